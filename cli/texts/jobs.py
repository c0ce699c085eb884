"""Jobs in words."""

from cli.render import listing, sentence
from services.jobs import AddedJob, DeletedJob, ImportedJobs, Jobs

FORMS = {
    Jobs: listing("id url interval_s next_run_at last_state", rare="from_end jitter_s"),
    AddedJob: sentence("{change} job {id} of {url}, every {interval_s} s"),
    ImportedJobs: sentence("{created:job} created, {changed} changed, {unchanged} unchanged"),
    DeletedJob: sentence("deleted job {id} of {url}; {cancelled:run} cancelled"),
}
