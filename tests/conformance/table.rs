//! The table itself: cases, where they run, and how it is filled and printed.

use std::ffi::OsStr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use support::{Caller, Column, Run, Trial};

/// Starting a container is mostly waiting, even on two processors.
const HANDS: usize = 3;

/// A state directory and a workspace of one case's own, in one column.
pub struct Ground {
    pub trial: Trial,
    pub column: Column,
}

impl Ground {
    pub fn run<Word: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = Word>) -> Run<'_> {
        self.column.dress(self.trial.run(command))
    }

    pub fn sh(&self, script: &str) -> Run<'_> {
        self.run(["sh", "-c", script])
    }

    pub fn python(&self, code: &str) -> Run<'_> {
        self.run(["/usr/bin/python3", "-c", code])
    }

    /// What lies there after the run, by its path in the record.
    pub fn kept(&self, record: &serde_json::Value, field: &str) -> Vec<u8> {
        let path = record[field].as_str().expect("a path");
        std::fs::read(self.trial.state().join(path)).expect("the file")
    }
}

#[derive(Clone, Copy)]
pub struct Case {
    /// What holds.
    pub name: &'static str,
    pub check: fn(&Ground),
    /// Columns that cannot do it, each with the reason.
    pub lacks: &'static [(Column, &'static str)],
}

impl Case {
    pub const fn new(name: &'static str, check: fn(&Ground)) -> Self {
        Self {
            name,
            check,
            lacks: &[],
        }
    }

    pub const fn but(
        name: &'static str,
        lacks: &'static [(Column, &'static str)],
        check: fn(&Ground),
    ) -> Self {
        Self { name, check, lacks }
    }
}

enum Outcome {
    Holds(Duration),
    Broken(String),
    Lacks(&'static str),
}

/// Runs every case in this column and prints how each ended.
///
/// # Panics
/// When one does not hold.
pub fn fill(column: Column, cases: &[Case]) {
    if !column.is_here() {
        return;
    }
    let since = Instant::now();
    let outcomes = share(cases.len(), |number| tried(column, &cases[number]));
    let mut broken = Vec::new();
    println!("{:<68} {column}", "what holds");
    for (case, outcome) in cases.iter().zip(&outcomes) {
        let name = case.name;
        match outcome {
            Outcome::Holds(took) => println!("{name:<68} yes  {:>6} ms", took.as_millis()),
            Outcome::Lacks(reason) => println!("{name:<68} -    {reason}"),
            Outcome::Broken(said) => {
                println!("{name:<68} NO");
                broken.push(format!("{name}: {said}"));
            }
        }
    }
    println!("{} cases in {:?}", outcomes.len(), since.elapsed());
    assert!(broken.is_empty(), "{column}:\n{}", broken.join("\n"));
}

/// Each of so many, a few at a time; what came of them in their order.
pub fn share<T: Send>(count: usize, each: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..HANDS {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    let outcome = (number, each(number));
                    done.lock().expect("the table").push(outcome);
                }
            });
        }
    });
    let mut done = done.into_inner().expect("the table");
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, outcome)| outcome).collect()
}

fn tried(column: Column, case: &Case) -> Outcome {
    let lack = case.lacks.iter().find(|(lacking, _)| *lacking == column);
    if let Some((_, reason)) = lack {
        return Outcome::Lacks(reason);
    }
    let since = Instant::now();
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let ground = Ground {
            trial: Trial::new(Caller::Root).expect("root"),
            column,
        };
        (case.check)(&ground);
        column.assert_no_container(&ground.trial);
        ground.trial.end();
    }));
    match tried {
        Ok(()) => Outcome::Holds(since.elapsed()),
        Err(panic) => Outcome::Broken(said(&*panic)),
    }
}

pub fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let word = || panic.downcast_ref::<&str>().map(|it| (*it).to_owned());
    text.or_else(word).unwrap_or_default()
}
