//! Broken evidence: each check must notice it.
