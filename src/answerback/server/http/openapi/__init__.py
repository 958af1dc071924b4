"""The OpenAPI document of an app. It needs only msgspec: CGI and the command line print it too."""

from .document import document, document_json

__all__ = ["document", "document_json"]
