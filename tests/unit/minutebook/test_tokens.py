import pytest

from minutebook import Client, actions


@pytest.mark.parametrize("token", ["mbt_s3\r\ncret", "mbt_s3cr\u00e9t", "mbt_s3\0cret"])
def test_a_broken_token_is_refused_and_not_shown(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.environ", {"SCHED_URL": "http://127.0.0.1:1", "SCHED_TOKEN": token})

    with pytest.raises(actions.NotConfigured, match="the token holds a line break") as refused:
        actions.client()

    assert "s3" not in str(refused.value)


def test_a_line_break_after_a_token_is_left_out() -> None:
    client = Client("http://127.0.0.1:1", "mbt_s3cret\n")

    assert client._http.headers["Authorization"] == "Bearer mbt_s3cret"
