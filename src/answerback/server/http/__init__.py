"""HTTP as REST and CGI share it: routes, refusals, pages and the OpenAPI document."""
