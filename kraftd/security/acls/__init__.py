"""ACLs compiled for the questions of an authorizer: one resource, or any resource of a type."""
