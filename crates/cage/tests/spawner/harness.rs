//! A test harness without threads: each test is a process of its own, and begins with nothing but
//! its first thread. It speaks what `cargo test` and `cargo nextest` ask for.

use std::process::{Command, ExitCode};

use rustix::process::{DumpableBehavior, Gid, Uid, set_dumpable_behavior};

/// `nobody`, for the tests of an ordinary user that root runs.
const NOBODY: u32 = 65534;

#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) body: fn(),
    pub(crate) callers: &'static [Caller],
}

/// The functions, each under its own name, after the module that lists them.
macro_rules! cases {
    ($($module:ident :: $name:ident),+ $(,)?) => {
        cases!(&[harness::Caller::Root, harness::Caller::User], $($module :: $name),+)
    };
    ($callers:expr, $($module:ident :: $name:ident),+ $(,)?) => {
        &[$(harness::Case {
            name: concat!(module_path!(), "::", stringify!($name)),
            body: $module::$name,
            callers: $callers,
        }),+]
    };
}

/// A case is run as root, if we are root, and as an ordinary user, unless it is for one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Root,
    User,
}

impl Caller {
    fn all() -> &'static [Self] {
        match rustix::process::geteuid().is_root() {
            true => &[Self::Root, Self::User],
            false => &[Self::User],
        }
    }

    fn name(self, case: &Case) -> String {
        let (_crate, name) = case.name.split_once("::").unwrap();
        match self {
            Self::Root => format!("root::{name}"),
            Self::User => format!("user::{name}"),
        }
    }

    /// There is one thread, so this is the whole process.
    fn become_it(self) {
        if self == Self::Root || !rustix::process::geteuid().is_root() {
            return;
        }
        let (gid, uid) = (Gid::from_raw(NOBODY), Uid::from_raw(NOBODY));
        rustix::thread::set_thread_groups(&[]).unwrap();
        rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        // As after a login: changing the user hides a process from itself.
        set_dumpable_behavior(DumpableBehavior::Dumpable).unwrap();
    }
}

pub(crate) fn run(cases: &[Case]) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|it| it == flag);
    let wanted = arguments.iter().find(|it| !it.starts_with('-'));
    let all: Vec<(Caller, &Case)> = Caller::all()
        .iter()
        .flat_map(|caller| cases.iter().map(move |case| (*caller, case)))
        .filter(|(caller, case)| case.callers.contains(caller))
        .collect();
    if has("--list") {
        // None is ignored, and the format is always the terse one.
        let listed = all.iter().filter(|_| !has("--ignored"));
        listed.for_each(|(caller, case)| println!("{}: test", caller.name(case)));
        return ExitCode::SUCCESS;
    }
    let named = |name: &str| wanted.is_none_or(|wanted| name.contains(wanted.as_str()));
    if has("--exact") {
        let exact = |(caller, case): &&(Caller, &Case)| Some(&caller.name(case)) == wanted;
        let (caller, case) = all.iter().find(exact).expect("a test of that name");
        caller.become_it();
        (case.body)();
        return ExitCode::SUCCESS;
    }
    let mut failed = false;
    for name in all.iter().map(|(caller, case)| caller.name(case)) {
        if named(&name) {
            let own = std::env::current_exe().unwrap();
            let status = Command::new(own).args([&name, "--exact"]).status().unwrap();
            println!("{name}: {status}");
            failed |= !status.success();
        }
    }
    ExitCode::from(u8::from(failed))
}
