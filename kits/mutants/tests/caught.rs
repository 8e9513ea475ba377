//! Every broken store is caught by a case of the clause that it breaks.

use std::fmt::Write;
use std::panic;
use std::thread;

use steadfast_conformance::{Clause, all_cases, prove};
use steadfast_mutants::Broken;

/// Bounds the cases that are tried before a look at whether the mutant is caught. A case that fails may wait
/// for half a minute before it says so, so few are tried when one has failed.
const AT_ONCE: usize = 6;

#[test]
#[allow(clippy::print_stdout, reason = "the table is what a reader of this test wants to see")]
fn every_broken_store_is_caught_by_a_case_of_its_clause() {
    let whole = prove(&steadfast_mutants::whole(), |_| true);
    assert!(whole.is_kept(), "the copy that nothing is broken in fails: {whole}");

    let mutants = steadfast_mutants::all();
    let mut table = String::new();
    let mut escaped = Vec::new();
    for ((mutant, _), case) in mutants.iter().zip(caught(&mutants)) {
        if case.is_none() {
            escaped.push(mutant.name);
        }
        let by = case.unwrap_or("ESCAPED");
        writeln!(table, "{:>4}  {:<56} {by}", mutant.clause, mutant.name).expect("a string takes text");
    }
    println!("{table}{} broken stores, {} escaped", mutants.len(), escaped.len());
    assert!(mutants.len() >= 48, "the list has {} mutants", mutants.len());
    assert!(escaped.is_empty(), "not caught: {}", escaped.join(", "));
}

/// Names the case that catches each mutant. Each has a thread of its own, because most of the time is
/// waiting.
#[allow(clippy::expect_used, reason = "a test panics with what it relies on")]
fn caught(mutants: &[Broken]) -> Vec<Option<&'static str>> {
    let cases: Vec<_> = all_cases().into_iter().map(|case| (case.clause(), case.name)).collect();
    let catch = |(mutant, subject): &Broken| {
        let broken = Clause::of(mutant.clause).expect("the list names clauses of the contract");
        let of_clause = cases.iter().filter(|(clause, _)| *clause == broken);
        let names: Vec<&str> = of_clause.map(|(_, name)| *name).collect();
        names.chunks(AT_ONCE).find_map(|some| {
            let report = prove(subject, |case| some.contains(&case.name));
            report.failures().next().map(|(case, _)| case)
        })
    };
    // A caught mutant panics by design; only the table is worth reading.
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let caught = thread::scope(|scope| {
        let threads: Vec<_> = mutants.iter().map(|mutant| scope.spawn(|| catch(mutant))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a case that panics is caught")).collect()
    });
    panic::set_hook(hook);
    caught
}
