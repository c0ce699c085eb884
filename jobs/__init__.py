"""Jobs: work for workers in any language, which ask for it over HTTP."""
