//! Checks that several kinds share: the size and the characters of names, ids and payloads.

use super::Site;
use crate::ErrorDetails;
use crate::limits::MAX_NAME_BYTES;
use crate::replay::Options;
use crate::vocabulary::error::application_error;

pub(crate) fn check_name(what: &str, name: &str) -> Result<(), ErrorDetails> {
    check_size(what, name.len(), MAX_NAME_BYTES)?;
    if name.contains('\0') {
        return Err(application_error(format!(
            "{what} {name:?} contains a NUL character, which no name or id may"
        )));
    }
    Ok(())
}

pub(crate) fn check_payload(what: &str, payload: &str, options: &Options) -> Result<(), ErrorDetails> {
    check_size(what, payload.len(), options.max_payload_bytes)
}

/// Checks the start of another orchestration.
pub(crate) fn check_start(
    name: &str,
    instance: &str,
    input: &str,
    site: &Site<'_>,
) -> Result<(), ErrorDetails> {
    check_name("orchestration name", name)?;
    check_name("instance id", instance)?;
    check_payload("orchestration input", input, site.options)
}

pub(crate) fn check_size(what: &str, size: usize, max: usize) -> Result<(), ErrorDetails> {
    if size > max {
        return Err(application_error(format!("{what} size ({size} bytes) exceeds limit ({max} bytes)")));
    }
    Ok(())
}
