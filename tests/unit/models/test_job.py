from models.job import id_of


def test_a_job_is_named_by_the_sha_1_of_its_url() -> None:
    assert id_of("https://example.com/feed") == "2455a093da54"
