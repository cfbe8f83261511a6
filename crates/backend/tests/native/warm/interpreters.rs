//! Interpreters that are not as they should be.

use glovebox_backend::{Ending, Language, Preload};
use glovebox_model::Code;
use rustix::process::{Pid, Signal, kill_process};

use crate::house::{Rooms, Yard, profile, run, soon, text, unbound};
use crate::warm::python;

/// Nothing ran, so it is no program's exit code.
pub(crate) fn an_order_that_cannot_be_read_is_our_failure() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let warm = python::warm(&yard, &profile);
    let interpreter = *warm.pids().last().unwrap();
    let bound = warm.bind(&rooms.room()).unwrap();
    kill_process(Pid::from_raw(interpreter).unwrap(), Signal::KILL).unwrap();
    let order = python::program("print(1)");
    let error = run(bound, &profile, &order, None).unwrap_err();
    assert_eq!(error.code, Code::Internal, "{error:?}");
    // An order of another kind is never half understood.
    let warm = python::warm(&yard, &profile);
    let bound = warm.bind(&rooms.room()).unwrap();
    let other = crate::house::shell("echo ran");
    let error = run(bound, &profile, &other, None).unwrap_err();
    assert_eq!(error.code, Code::Internal, "{error:?}");
}

pub(crate) fn a_directory_that_is_missing_is_told() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    for language in [Language::Python, Language::Node] {
        let warm = python::warm_with(&yard, &profile, language);
        let mut order = python::program_of(language, "1");
        order.cwd = text("/workspace/work/nowhere");
        let bound = warm.bind(&rooms.room()).unwrap();
        let error = run(bound, &profile, &order, None).unwrap_err();
        assert_eq!(error.code, Code::CwdNotFound, "{error:?}");
    }
}

pub(crate) fn one_that_died_is_noticed() {
    let yard = Yard::new();
    let profile = profile();
    let mut warm = python::warm(&yard, &profile);
    let pids = warm.pids();
    assert_eq!(pids.len(), 3);
    kill_process(Pid::from_raw(pids[2]).unwrap(), Signal::KILL).unwrap();
    let deadline = soon();
    while warm.is_alive() {
        assert!(std::time::Instant::now() < deadline);
        std::thread::yield_now();
    }
}

pub(crate) fn what_cannot_be_started_ahead_is_told() {
    let yard = Yard::new();
    let profile = profile();
    let spec = unbound(&profile);
    for (command, code) in [
        ("no-such-python", Code::CommandNotFound),
        // Takes the option and says nothing.
        ("false", Code::SetupFailed),
    ] {
        let preload = Preload {
            language: Language::Python,
            command: text(command),
            ..python::preload(Language::Python)
        };
        let state = yard.house.state();
        let mut warm = yard.native().warm(&spec, &state, Some(preload)).unwrap();
        let error = warm.settle(soon()).unwrap_err();
        assert_eq!(error.code, code, "{error:?}");
    }
}

pub(crate) fn its_channel_is_closed_before_the_program_runs() {
    let yard = Yard::new();
    let profile = profile();
    let rooms = Rooms::new(&yard.house, "a");
    let look = "import os; print(sorted(os.listdir('/proc/self/fd')))";
    let bound = python::warm(&yard, &profile).bind(&rooms.room()).unwrap();
    let told = run(bound, &profile, &python::program(look), None).unwrap();
    // The last is the directory that is read.
    assert_eq!(told.stdout, "['0', '1', '2', '3']\n");
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 });
    let look = "const fs = require('fs');
for (const fd of fs.readdirSync('/proc/self/fd')) {
  try { console.log(fs.readlinkSync('/proc/self/fd/' + fd)) } catch { }
}";
    let warm = python::warm_with(&yard, &profile, Language::Node);
    let bound = warm.bind(&rooms.room()).unwrap();
    let told = run(
        bound,
        &profile,
        &python::program_of(Language::Node, look),
        None,
    )
    .unwrap();
    assert!(!told.stdout.contains("socket"), "{told:?}");
    assert_eq!(told.ended.ending, Ending::Exited { code: 0 }, "{told:?}");
}
