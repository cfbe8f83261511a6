//! What it costs a program to be observed: the same work with and without, in turn. By hand, as root
//! or not: `cargo run --release -p glovebox-backend --example observe_cost`

#![expect(clippy::print_stdout, reason = "a report")]

use std::collections::BTreeSet;
use std::time::Duration;

use glovebox_backend::{
    Cancel, Ending, Ground, Native, Notice, Observe, Order, Run, Sandbox, Sink, Spec,
};
use glovebox_cage::Spawner;
use glovebox_model::{
    Access, ByteString, Bytes, Count, Cpus, Limits, LimitsDemand, Millis, NetworkMode, Profile,
    SecurityMode, Stream, Tier,
};

const ROUNDS: usize = 3;

/// Name and line of shell.
const WORK: [(&str, &str); 3] = [
    (
        "2000 programs",
        "i=0; while [ $i -lt 2000 ]; do /bin/true; i=$((i+1)); done",
    ),
    (
        "a repository",
        "export HOME=/tmp; cd /tmp; git init -q r 2>/dev/null ; cd r; \
         git config user.name a; git config user.email a@b; \
         for i in 1 2 3 4 5 6 7 8 9 10; do \
         for j in 1 2 3 4 5 6 7 8 9 10; do echo $i $j > f$i-$j; done; \
         git add -A; git commit -qm $i; git status >/dev/null; git log --stat >/dev/null; done",
    ),
    (
        "20000 files",
        "exec python3 -c \"
import os
for at in range(20000):
    with open('/tmp/x', 'w') as it: it.write('x')
    os.unlink('/tmp/x')\"",
    ),
];

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// How many notices there were.
#[derive(Default)]
struct Tally(usize);

impl Sink for Tally {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        println!("{}", String::from_utf8_lossy(bytes));
    }

    fn noticed(&mut self, _: Notice) {
        self.0 += 1;
    }
}

fn main() -> Outcome<()> {
    let spawner = Spawner::fork()?;
    let (ground, place) = (Ground::look(), tempfile::tempdir()?);
    let profile = profile();
    let mut made = 0;
    for (name, line) in WORK {
        for round in 0..ROUNDS {
            let mut took = Vec::new();
            for observe in [None, Some(Observe::default())] {
                made += 1;
                let mut native = Native::spawn(&ground, &spawner)?;
                native.reserve(&format!("glovebox-cost-{}-{made}", std::process::id()))?;
                let prepared = native.open(&spec(&profile, observe), place.path())?;
                took.push(run(prepared, &profile, line)?);
            }
            let [(plain, _), (observed, notices)] = took[..] else {
                continue;
            };
            let ratio = observed.as_secs_f64() / plain.as_secs_f64();
            println!("{name} {round}: {plain:?} {observed:?} {ratio:.2} ({notices} notices)");
        }
    }
    Ok(())
}

fn run(sandbox: impl Sandbox, profile: &Profile, line: &str) -> Outcome<(Duration, usize)> {
    let text = |text: &str| ByteString::try_from(text);
    let order = Order {
        argv: vec![text("sh")?, text("-c")?, text(line)?],
        env: vec![(text("PATH")?, text("/usr/local/bin:/usr/bin:/bin")?)],
        cwd: text("/workspace/work")?,
        path: vec![text("/usr/bin")?],
    };
    let (cancel, _canceler) = Cancel::new()?;
    let mut tally = Tally::default();
    let (ended, remains) = Box::new(sandbox).run(Run {
        order: &order,
        profile,
        watched: &[],
        stdin: None,
        terminal: None,
        secrets: &[],
        sink: &mut tally,
        cancel: &cancel,
        control: None,
    });
    drop(remains);
    let ended = ended?;
    match ended.ending {
        Ending::Exited { code: 0 } => Ok((ended.duration, tally.0)),
        other => Err(format!("{other:?}").into()),
    }
}

fn spec(profile: &Profile, observe: Option<Observe>) -> Spec<'_> {
    Spec {
        observe,
        ..Spec::new(profile)
    }
}

fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(300),
            session_ms: Millis::secs(300),
            cpu_ms: Millis::secs(300),
            memory_bytes: Bytes::mib(512),
            pids: Count(64),
            cpus_milli: Cpus::whole(2),
            disk_bytes: Bytes::mib(128),
            disk_files: Count(10_000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(1),
            open_files: Count(512),
            gpus: Count(0),
            tpus: Count(0),
            egress_bytes: Bytes::mib(1),
            egress_connections: Count(1),
            network_ms: Millis::secs(1),
        },
        network: NetworkMode::None,
        allow_net: BTreeSet::new(),
        workspace: Access::None,
        env_allow: BTreeSet::new(),
        tier: Tier::Low,
        security: SecurityMode::default(),
        limits_demand: LimitsDemand::Supervised,
        approval: glovebox_model::ApprovalMode::default(),
        require: BTreeSet::new(),
        backend: None,
        runtime: None,
        image: None,
    }
}
