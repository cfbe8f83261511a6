//! What one run, one exec and one call of a tool spend on this host, counted and never timed: a change
//! that does more fails here, and a busy machine does not. The budgets are in [`table`].
//!
//! Counted for the release binary alone. The numbers are of a Debian host, root, control groups version
//! 1; a host with other libraries or groups may need others by a few.

mod calls;
mod commands;
mod elf;
mod processes;
mod served;
mod table;

use std::path::{Path, PathBuf};

use crate::served::Served;
use crate::table::{Spent, Unit};

/// The release binary; `None` is said, and is a failure in CI.
fn release() -> Option<PathBuf> {
    let found = support::release_glovebox();
    if found.is_none() {
        support::missing("no release binary to count (`cargo build --release` makes one)");
    }
    found
}

/// On a busy machine timers go off in the middle of what is counted, and make it dearer; a change that
/// spends more does so every time.
const TRIES: usize = 3;

fn tried(count: impl Fn() -> Vec<Spent>) -> Vec<Spent> {
    let mut spent = count();
    for _ in 1..TRIES {
        if !table::exceeds(&spent) {
            break;
        }
        spent = count();
    }
    spent
}

#[test]
fn nothing_spends_more_than_its_budget() {
    let Some(binary) = release() else { return };
    let mut spent = elf::spent(&binary);
    // How much of a file one fault brings depends on how it came into memory: here always alike.
    let memory = tempfile::tempdir_in("/dev/shm").expect("a directory");
    let copy = memory.path().join("glovebox");
    std::fs::copy(&binary, &copy).expect("a copy of the binary");
    let binary = copy;
    spent.extend(tried(|| commands::spent(&binary)));
    let served = |what, start: &dyn Fn(Option<&Path>) -> Box<dyn Served>| {
        tried(|| served::spent(what, start))
    };
    spent.extend(served("pooled exec", &|log| {
        Box::new(served::Execs::pooled(&binary, log)) as Box<dyn Served>
    }));
    spent.extend(served("kept exec", &|log| {
        Box::new(served::Execs::kept(&binary, log)) as Box<dyn Served>
    }));
    spent.extend(served("MCP call", &|log| {
        Box::new(served::Tools::start(&binary, log)) as Box<dyn Served>
    }));
    table::print(&spent);
    let over = table::over(&spent);
    assert!(over.is_empty(), "{}", over.join("\n"));
}

/// The control: each number of the table is compared, and one too many is told.
#[test]
fn one_more_than_the_budget_is_told() {
    let within: Vec<Spent> = table::BUDGETS
        .iter()
        .map(|it| Spent::new(it.what, it.unit, it.most))
        .collect();
    assert_eq!(table::over(&within), Vec::<String>::new());
    for place in 0..within.len() {
        let mut spent = within.clone();
        spent[place].amount += 1;
        let told = table::over(&spent);
        assert_eq!(told.len(), 1, "{told:?}");
        let row = &table::BUDGETS[place];
        assert!(told[0].starts_with(&format!("`{}`: {} ", row.what, row.most + 1)));
        assert!(told[0].contains(&format!("the budget is {}", row.most)));
    }
    let lost = table::over(&within[1..]);
    assert_eq!(lost.len(), 1, "what nobody counted is told: {lost:?}");
    let mut more = within;
    more.push(Spent::new("somebody else", Unit::Syncs, 0));
    assert_eq!(table::over(&more).len(), 1, "what has no budget is told");
}

/// The other control: an fsync and a file more are counted as such, whoever is traced.
#[test]
fn one_more_sync_and_one_more_file_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let count = |script: &str| {
        let log = directory.path().join("log");
        let mut command = commands::traced(Path::new(support::python()), Some(&log));
        command.args(["-I", "-S", "-c", script]);
        let mut child = command.spawn().expect("start strace");
        assert!(child.wait().expect("its end").success());
        let text = calls::whole(&log);
        calls::count(&text, &[0, text.len()])[0]
    };
    let path = directory.path().join("made");
    let open = format!("import os\nfile = os.open({path:?}, os.O_CREAT | os.O_WRONLY)\n");
    let (before, after) = (count(&open), count(&format!("{open}os.fsync(file)\n")));
    assert_eq!((after.syncs, after.made), (before.syncs + 1, before.made));
    let other = directory.path().join("other");
    let after = count(&format!("{open}os.mkdir({other:?})\n"));
    assert_eq!((after.syncs, after.made), (before.syncs, before.made + 1));
    assert_eq!(after.calls, before.calls + 1);
}
