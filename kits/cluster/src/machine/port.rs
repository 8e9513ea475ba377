//! A free port for a server.

use std::net::{Ipv4Addr, TcpListener};

use crate::{ServerError, name};

/// Below the ports that the system hands to clients (from 32768): a client that tries a stopped server again
/// and again could otherwise be given the server's own port, connect to itself and keep the server from it.
const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;
/// How many ports are tried. Far fewer than that are in use on a healthy machine.
const TRIES: usize = 200;

/// Finds a port on which no process listens now.
pub(crate) fn free() -> Result<u16, ServerError> {
    let ports = u64::from(LAST - FIRST) + 1;
    (0..TRIES)
        .map(|_| FIRST + (name::random() % ports) as u16)
        .find(|port| is_free(*port))
        .ok_or(ServerError::NoPort { first: FIRST, last: LAST, tries: TRIES })
}

pub(crate) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_with_a_listener_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }

    #[test]
    fn a_free_port_is_in_the_range() {
        assert!((FIRST..=LAST).contains(&free().unwrap()));
    }
}
