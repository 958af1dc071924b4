"""The HTTP parts that REST and CGI share: routes, refusals, pages and the OpenAPI document."""
