"""The data product of a small app (tenant): sources, snapshots, mail, and the steps over them."""
