//! The smallest sandbox that runs a shell: the host's files, processes and users of its own.

use std::ffi::CString;
use std::os::fd::AsFd;

use glovebox_cage::{
    After, Event, Handle, Ids, Namespace, Opener, Order, PayloadStep, Plan, ProcessUsage, Step,
};
use rustix::fs::{Mode, OFlags};

fn plan() -> Plan {
    let uid = rustix::process::geteuid();
    let (outer_uid, outer_gid) = match uid.is_root() {
        true => (65534, 65534),
        false => (uid.as_raw(), rustix::process::getegid().as_raw()),
    };
    Plan {
        namespaces: Namespace::ALL.to_vec(),
        ids: Ids {
            inner: 1000,
            outer_uid,
            outer_gid,
            deny_setgroups: !uid.is_root(),
        },
        cgroup: None,
        opener: Opener::Init,
        steps: vec![Step::BecomeUser, Step::DieWithKeeper],
        payload: vec![
            PayloadStep::NewSession,
            PayloadStep::DefaultSignals,
            PayloadStep::CloseOthers,
        ],
        after: After::End,
    }
}

/// Starts a line of shell and waits until it runs.
pub(crate) fn start(handle: &Handle, line: &str) {
    start_unheard(handle, line);
    match handle.next_init().unwrap() {
        Some(Event::Ready) => {}
        other => panic!("instead of ready: {other:?}, {:?}", handle.next_control()),
    }
}

/// The same for one that may not come so far.
pub(crate) fn start_unheard(handle: &Handle, line: &str) {
    handle.build(plan(), &[]).unwrap();
    let null = rustix::fs::open(c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    let null = null.unwrap();
    let order = Order {
        argv: vec![c"sh".into(), c"-c".into(), CString::new(line).unwrap()],
        env: vec![c"PATH=/usr/bin:/bin".into()],
        cwd: c"/".into(),
        path: vec![c"/usr/bin".into(), c"/bin".into()],
        terminal: None,
    };
    handle.execute(order, Some([null.as_fd(); 3]), &[]).unwrap();
}

/// Waits for its end: the raw wait status, and what was used.
pub(crate) fn finish(handle: &Handle) -> (i32, ProcessUsage) {
    let status = match handle.next_init().unwrap() {
        Some(Event::Exited { status, .. }) => status,
        other => panic!("instead of an end: {other:?}"),
    };
    loop {
        match handle.next_control().unwrap() {
            Event::Born { .. } => {}
            Event::Ended { usage, .. } => return (status, usage),
            other => panic!("instead of the end: {other:?}"),
        }
    }
}

pub(crate) fn run(handle: &Handle, line: &str) -> (i32, ProcessUsage) {
    start(handle, line);
    finish(handle)
}
