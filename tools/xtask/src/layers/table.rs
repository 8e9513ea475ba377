//! The direction of dependencies, as data: `core ◄ clock, store ◄ client ◄ runtime`.
//!
//! Stores use core, store and clock only; kits use what they test; the facade uses everything; apps, examples
//! and benches use the facade. Rows of packages that do not exist yet state where they will stand.

/// Says which packages of the workspace one package may use.
pub(super) struct Row {
    pub(super) package: &'static str,
    pub(super) may_use: &'static [&'static str],
    /// What its tests may use beyond that.
    pub(super) tests_may_use: &'static [&'static str],
}

pub(super) const CORE: &str = "steadfast-core";
const CLOCK: &str = "steadfast-clock";
const STORE: &str = "steadfast-store";
const CLIENT: &str = "steadfast-client";
const RUNTIME: &str = "steadfast-runtime";
const MACROS: &str = "steadfast-macros";
const MEMORY: &str = "steadfast-memory";
const SQLITE: &str = "steadfast-sqlite";
const POSTGRES: &str = "steadfast-postgres";
const CLUSTER: &str = "steadfast-cluster";
const CONFORMANCE: &str = "steadfast-conformance";
const TESTING: &str = "steadfast-testing";
const FACADE: &str = "steadfast";
const AUDIT: &str = "steadfast-audit";
const BROKEN: &str = "steadfast-broken";
const BROKEN_SQLITE: &str = "steadfast-broken-sqlite";
const DISK: &str = "steadfast-disk";
const MUTANTS: &str = "steadfast-mutants";
const COMPAT: &str = "steadfast-compat";

const KITS: &[&str] = &[CONFORMANCE, TESTING];

/// The memory store is the oracle and the test mode, so tests name it as they name a kit.
const KITS_AND_MEMORY: &[&str] = &[CONFORMANCE, TESTING, MEMORY];

/// Tests of what speaks to a PostgreSQL server need one.
const KITS_MEMORY_AND_CLUSTER: &[&str] = &[CONFORMANCE, TESTING, MEMORY, CLUSTER];

pub(super) const TABLE: &[Row] = &[
    Row { package: CORE, may_use: &[], tests_may_use: KITS },
    Row { package: CLOCK, may_use: &[CORE], tests_may_use: KITS },
    // The adapter over foreign providers needs a clock: they do not tell their time.
    Row { package: STORE, may_use: &[CORE, CLOCK], tests_may_use: KITS },
    Row { package: CLIENT, may_use: &[CORE, CLOCK, STORE], tests_may_use: KITS_AND_MEMORY },
    // The runtime knows no store. One feature of it, `in-memory`, is a constructor that opens the memory
    // store.
    Row { package: RUNTIME, may_use: &[CORE, CLOCK, STORE, CLIENT, MEMORY], tests_may_use: KITS_AND_MEMORY },
    // What a macro writes names the facade, so only its tests can use it.
    Row { package: MACROS, may_use: &[], tests_may_use: &[FACADE] },
    Row { package: MEMORY, may_use: &[CORE, CLOCK, STORE], tests_may_use: KITS },
    Row { package: SQLITE, may_use: &[CORE, CLOCK, STORE], tests_may_use: KITS_AND_MEMORY },
    Row { package: POSTGRES, may_use: &[CORE, CLOCK, STORE], tests_may_use: KITS_MEMORY_AND_CLUSTER },
    // It knows a server and nothing of the project, so that everything may take a server from it.
    Row { package: CLUSTER, may_use: &[], tests_may_use: &[] },
    Row { package: CONFORMANCE, may_use: &[CORE, CLOCK, STORE], tests_may_use: KITS_AND_MEMORY },
    Row {
        package: TESTING,
        may_use: &[CORE, CLOCK, STORE, CLIENT, RUNTIME, MEMORY, CONFORMANCE],
        tests_may_use: KITS_AND_MEMORY,
    },
    Row {
        package: FACADE,
        may_use: &[
            CORE,
            CLOCK,
            STORE,
            CLIENT,
            RUNTIME,
            MACROS,
            MEMORY,
            SQLITE,
            POSTGRES,
            CONFORMANCE,
            TESTING,
        ],
        tests_may_use: KITS,
    },
    // It reads a store and knows nothing of what ran on it, so that every harness can ask it.
    Row { package: AUDIT, may_use: &[CORE, CLOCK, STORE], tests_may_use: &[] },
    // It knows SQLite and nothing of the project but the dice; its tests run the store on it.
    Row { package: "steadfast-disk", may_use: &[TESTING], tests_may_use: &[CORE, CLOCK, STORE, SQLITE] },
    // Its build copies the runtime, so it uses what that uses.
    Row { package: BROKEN, may_use: &[CORE, CLOCK, STORE, CLIENT], tests_may_use: &[] },
    // Its build copies the SQLite store, so it uses what that uses.
    Row { package: BROKEN_SQLITE, may_use: &[CORE, CLOCK, STORE], tests_may_use: &[] },
    // It plays the whole engine on every store that a simulated machine can have.
    Row {
        package: "steadfast-simulation",
        may_use: &[CORE, CLOCK, STORE, RUNTIME, MEMORY, SQLITE, FACADE, TESTING, AUDIT, DISK],
        tests_may_use: &[],
    },
    // It is the simulation, built with broken copies.
    Row {
        package: "steadfast-mutations",
        may_use: &[CORE, CLOCK, STORE, MEMORY, FACADE, TESTING, AUDIT, DISK, BROKEN, BROKEN_SQLITE, MUTANTS],
        tests_may_use: &[],
    },
    // It runs real processes on every store with code that a user would write, and audits what they did.
    Row {
        package: "steadfast-harness",
        may_use: &[FACADE, CORE, CLOCK, TESTING, AUDIT, CLUSTER],
        tests_may_use: &[],
    },
    // It is compiled with a file of the runtime, whose other parts it does not use.
    Row { package: "steadfast-model", may_use: &[CORE, STORE], tests_may_use: &[CLOCK, MEMORY] },
    // Its build copies the memory store, so it uses what that uses, and the kit that it proves.
    Row { package: MUTANTS, may_use: &[CORE, CLOCK, STORE, CONFORMANCE], tests_may_use: &[] },
    Row { package: "steadfast-cli", may_use: &[FACADE], tests_may_use: KITS },
    Row { package: "steadfast-dashboard", may_use: &[FACADE], tests_may_use: KITS },
    Row { package: "steadfast-examples", may_use: &[FACADE], tests_may_use: KITS },
    // It is a program of somebody who knows the facade only, under another name.
    Row { package: COMPAT, may_use: &[FACADE], tests_may_use: &[] },
    // It runs what a user would write on every store, with the wrapper that a user would write.
    Row {
        package: "steadfast-behaviour",
        may_use: &[FACADE, CLOCK, STORE, MEMORY, COMPAT, CLUSTER],
        tests_may_use: &[CORE, SQLITE],
    },
    // It makes full stores with real orchestrations and copies of their rows, and counts the work of calls.
    Row { package: "steadfast-scale", may_use: &[FACADE, CORE, STORE, CLUSTER], tests_may_use: &[] },
    // It measures the core alone, so that nothing else is in its figures.
    Row { package: "steadfast-bench-core", may_use: &[CORE], tests_may_use: KITS },
    // It measures the store alone, without the runtime that the facade would bring.
    Row { package: "steadfast-bench-store", may_use: &[CORE, CLOCK, STORE, SQLITE], tests_may_use: KITS },
    // It measures on a server of its own.
    Row { package: "steadfast-bench-quick", may_use: &[FACADE, CLUSTER], tests_may_use: KITS },
    // It sees to it that there is a server to test with.
    Row { package: "xtask", may_use: &[CLUSTER], tests_may_use: &[] },
];

/// Names packages that `core` must not pull in, directly or through another.
pub(super) struct Ban {
    /// Package names; one that ends in `*` stands for all that begin so.
    packages: &'static [&'static str],
    /// What `core` would come to know.
    pub(super) what: &'static str,
}

impl Ban {
    pub(super) fn names(&self, package: &str) -> bool {
        self.packages.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => package.starts_with(beginning),
            None => package == *pattern,
        })
    }
}

pub(super) const BANNED_FROM_CORE: &[Ban] = &[
    Ban {
        packages: &[
            "tokio*",
            "async-std",
            "async-executor",
            "async-global-executor",
            "async-io",
            "futures-executor",
            "glommio",
            "mio",
            "monoio",
            "pollster",
            "smol",
        ],
        what: "an async runtime",
    },
    Ban { packages: &["rand", "rand_*", "getrandom", "fastrand", "oorandom"], what: "random numbers" },
    Ban {
        packages: &[
            "chrono",
            "coarsetime",
            "instant",
            "jiff",
            "quanta",
            "time",
            "web-time",
            "steadfast-clock",
        ],
        what: "the clock",
    },
    Ban {
        packages: &[
            "fs-err", "fs4", "memmap2", "tempfile", "walkdir", "hyper", "reqwest", "rustls", "socket2",
        ],
        what: "files or the network",
    },
    Ban {
        packages: &[
            "deadpool*",
            "diesel*",
            "libsqlite3-sys",
            "postgres*",
            "rusqlite",
            "sea-orm*",
            "sqlite*",
            "sqlx*",
        ],
        what: "SQL",
    },
    Ban { packages: &["steadfast-store"], what: "that a store exists" },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_one_row() {
        for row in TABLE {
            let rows = TABLE.iter().filter(|other| other.package == row.package).count();
            assert_eq!(rows, 1, "{}", row.package);
        }
    }

    #[test]
    fn every_package_that_may_be_used_has_a_row() {
        for used in TABLE.iter().flat_map(|row| row.may_use.iter().chain(row.tests_may_use)) {
            assert!(TABLE.iter().any(|row| row.package == *used), "{used}");
        }
    }

    #[test]
    fn the_allowed_edges_have_no_cycle() {
        // A package may only use those that can be placed before it; when no more can be placed, all must be.
        let mut placed: Vec<&str> = Vec::new();
        while let Some(next) = TABLE.iter().find(|row| {
            !placed.contains(&row.package) && row.may_use.iter().all(|used| placed.contains(used))
        }) {
            placed.push(next.package);
        }
        assert_eq!(placed.len(), TABLE.len(), "placed only {placed:?}");
    }

    #[test]
    fn stores_use_core_store_and_clock_only() {
        for store in [MEMORY, SQLITE, POSTGRES] {
            let row = TABLE.iter().find(|row| row.package == store).unwrap();
            assert_eq!(row.may_use, [CORE, CLOCK, STORE], "{store}");
        }
    }

    #[test]
    fn a_ban_names_whole_packages_or_a_beginning() {
        let ban = Ban { packages: &["time", "sqlx*"], what: "" };
        assert!(ban.names("time") && ban.names("sqlx") && ban.names("sqlx-core"));
        assert!(!ban.names("timely") && !ban.names("sql"));
    }
}
