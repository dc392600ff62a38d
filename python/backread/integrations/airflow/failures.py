"""Messages for errors that a retry would not fix, naming the connection and its field.

Does not import Airflow.
"""

from __future__ import annotations

from backread.errors import (
    AuthenticationError,
    BackreadError,
    ConfigurationError,
    NotFoundError,
    PermissionDeniedError,
    StatusError,
)

__all__ = ["permanent"]


def permanent(error: BackreadError, backread_conn_id: str) -> str | None:
    """The message for an error that a later attempt would get too; None for other errors.

    404 counts if it ended the whole operation, not for a single missing user.
    """
    name = f"the connection {backread_conn_id!r}"
    if isinstance(error, ConfigurationError):
        text = str(error)
        return text if text.startswith(name) else f"{name}: {text}"
    if not isinstance(error, StatusError):
        return None
    match error:
        case AuthenticationError():
            advice = (
                "it rejected the secret; correct the field password (API secret), or "
                "BACKREAD_API_SECRET if that is empty"
            )
        case PermissionDeniedError():
            advice = "the secret does not have access; set one that does as password (API secret)"
        case NotFoundError():
            advice = (
                "this is not the address of the service; correct the field host (Base URL), or "
                "BACKREAD_BASE_URL if that is empty"
            )
        case StatusError(status_code=406):
            advice = (
                "it does not accept the media type; correct the field vendor, or BACKREAD_VENDOR "
                "if that is empty"
            )
        case _:
            return None
    request = str(error).partition(": the service answered ")[0]
    asked = f"; request id {error.request_id}" if error.request_id else ""
    return f"{name}: {request}: the service answered {error.status_code}: {advice}{asked}"
