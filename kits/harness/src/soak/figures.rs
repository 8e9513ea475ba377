//! The figures of one interval: what was done, and what the workers and the store use.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

use super::{
    load::Interval,
    trend::{Bound, Way},
};
use crate::place::{Place, Room, StoreKind};

const MIB: f64 = 1_048_576.0;
/// The size of a page of memory as `/proc` counts it.
const PAGE: f64 = 4_096.0;

/// The figures of one interval.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Orchestrations that ended in a second.
    throughput: f64,
    /// From the start to the result, in milliseconds.
    p50: f64,
    p99: f64,
    /// The memory of all workers, in bytes.
    resident: f64,
    /// The open files of all workers.
    files: f64,
    room: Room,
}

/// One figure, and how it is judged.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) of: fn(&Figures) -> f64,
    way: Way,
    part: f64,
    /// On a SQLite file and on a PostgreSQL server.
    floors: (f64, f64),
}

/// All figures. A part says what is noise for a figure; a floor says what a small run may change by.
pub(super) const FIGURES: &[Figure] = &[
    Figure { name: "throughput", of: |f| f.throughput, way: Way::Down, part: 0.2, floors: (1.0, 1.0) },
    Figure { name: "p50", of: |f| f.p50, way: Way::Up, part: 0.5, floors: (30.0, 30.0) },
    Figure { name: "p99", of: |f| f.p99, way: Way::Up, part: 1.0, floors: (500.0, 500.0) },
    Figure {
        name: "resident memory",
        of: |f| f.resident,
        way: Way::Up,
        part: 0.15,
        floors: (16.0 * MIB, 16.0 * MIB),
    },
    Figure { name: "open files", of: |f| f.files, way: Way::Up, part: 0.1, floors: (10.0, 20.0) },
    // Bytes of a file; live rows of a server.
    Figure { name: "data", of: |f| f.room.data, way: Way::Up, part: 0.2, floors: (4.0 * MIB, 5_000.0) },
    // A server reuses the room of dead rows after a vacuum.
    Figure {
        name: "files of the store",
        of: |f| f.room.files,
        way: Way::Up,
        part: 0.3,
        floors: (8.0 * MIB, 64.0 * MIB),
    },
    // The log of a server is bounded by max_wal_size, 1 GB by default, and by the next checkpoint.
    Figure {
        name: "write-ahead log",
        of: |f| f.room.log,
        way: Way::Up,
        part: 0.5,
        floors: (16.0 * MIB, 1_024.0 * MIB),
    },
    // Free pages of a file; dead rows of a server, which is vacuumed at most once a minute.
    Figure {
        name: "dead rows or free pages",
        of: |f| f.room.dead,
        way: Way::Up,
        part: 1.0,
        floors: (4_096.0, 50_000.0),
    },
];

impl Figure {
    /// Returns the bound of the figure on a store.
    pub(super) fn bound(&self, store: StoreKind) -> Bound {
        let floor = match store {
            StoreKind::Sqlite => self.floors.0,
            StoreKind::Postgres => self.floors.1,
        };
        Bound { way: self.way, part: self.part, floor }
    }
}

impl Figures {
    /// Measures the store and the workers at the end of an interval.
    pub(super) async fn measure(
        place: &Place,
        workers: &[u32],
        mut interval: Interval,
        lasted: Duration,
    ) -> Result<Self> {
        let (mut resident, mut files) = (0.0, 0.0);
        for pid in workers {
            resident += memory(*pid)?;
            files += descriptors(*pid)?;
        }
        let throughput = interval.times_ms.len() as f64 / lasted.as_secs_f64();
        interval.times_ms.sort_by(f64::total_cmp);
        let part = |percent: usize| {
            let place = interval.times_ms.len() * percent / 100;
            interval.times_ms.get(place).or(interval.times_ms.last()).copied().unwrap_or(0.0)
        };
        let (p50, p99) = (part(50), part(99));
        Ok(Self { throughput, p50, p99, resident, files, room: place.room().await? })
    }

    /// Returns the names of the columns.
    pub(super) fn heading() -> String {
        format!(
            "{:>8} {:>8} {:>8} {:>8} {:>9} {:>6} {:>10} {:>10} {:>10} {:>9}",
            "minutes",
            "ended/s",
            "p50 ms",
            "p99 ms",
            "RSS MiB",
            "files",
            "data",
            "files MiB",
            "WAL MiB",
            "dead"
        )
    }

    /// Returns the figures in the columns of [`heading`](Self::heading).
    pub(super) fn line(&self, time: Duration) -> String {
        let Room { data, files, log, dead } = self.room;
        format!(
            "{:>8.1} {:>8.1} {:>8.1} {:>8.1} {:>9.1} {:>6.0} {:>10.0} {:>10.1} {:>10.1} {:>9.0}",
            time.as_secs_f64() / 60.0,
            self.throughput,
            self.p50,
            self.p99,
            self.resident / MIB,
            self.files,
            data,
            files / MIB,
            log / MIB,
            dead
        )
    }
}

/// Reads the memory of a process that is really there, in bytes.
fn memory(pid: u32) -> Result<f64> {
    let told = fs::read_to_string(format!("/proc/{pid}/statm")).context("no memory of a worker is told")?;
    let pages: f64 = told.split_whitespace().nth(1).context("no resident pages are told")?.parse()?;
    Ok(pages * PAGE)
}

/// Counts the open files of a process.
fn descriptors(pid: u32) -> Result<f64> {
    let open = fs::read_dir(format!("/proc/{pid}/fd")).context("no open files of a worker are told")?;
    Ok(open.count() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_memory_and_open_files() {
        let pid = std::process::id();
        assert!(memory(pid).unwrap() > MIB && descriptors(pid).unwrap() >= 3.0);
        assert!(memory(u32::MAX).is_err() && descriptors(u32::MAX).is_err());
    }

    #[test]
    fn the_figures_of_an_interval_stand_below_their_names() {
        let figures = Figures { p50: 12.5, files: 40.0, ..Figures::default() };
        let (heading, line) = (Figures::heading(), figures.line(Duration::from_secs(90)));
        assert_eq!(heading.len(), line.len());
        assert!(line.contains("12.5") && line.trim_start().starts_with("1.5 "), "{line}");
    }
}
