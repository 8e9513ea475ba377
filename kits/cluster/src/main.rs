//! Prints the address of a test server and keeps it until its input ends.
//!
//! `cargo run --package steadfast-cluster` gives the shared server to look at by hand, and
//! `cargo run --package steadfast-cluster durable` one of its own. Tests of this package run several of
//! these.

#![allow(clippy::print_stdout, reason = "a command line tool speaks to its terminal")]

use std::{env, io, process::ExitCode};

use steadfast_cluster::Server;

fn main() -> ExitCode {
    let server = match env::args().nth(1).as_deref() {
        None => Server::join(),
        Some("durable") => Server::durable(),
        Some(other) => {
            println!("`{other}` is not known: give nothing, or `durable`");
            return ExitCode::from(2);
        }
    };
    match server {
        Ok(server) => {
            println!("{}", server.url());
            io::copy(&mut io::stdin(), &mut io::sink()).ok();
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}
