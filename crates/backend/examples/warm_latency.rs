//! How long an exec in a sandbox that stood already takes, beside a plain process, and what one that
//! waits costs. By hand, as root: `cargo run --release -p glovebox-backend --example warm_latency`

#![expect(clippy::print_stdout, reason = "a report")]

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use glovebox_backend::{
    Cancel, Ending, ExecDirs, Ground, Kept, KeptNative, Language, Native, Order, Place, Preload,
    Run, Sandbox, Sink, Spec, Warm,
};
use glovebox_cage::Spawner;
use glovebox_model::{
    Access, ByteString, Bytes, Count, Cpus, Limits, LimitsDemand, Millis, NetworkMode, Profile,
    SecurityMode, Stream, Tier,
};
use glovebox_workspace::Dir;

const TIMES: usize = 200;
/// Until what the last one left is taken apart, and the next keeper is prepared.
const REST: Duration = Duration::from_millis(20);
const READY: Duration = Duration::from_secs(30);

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Outcome<()> {
    let spawner = Spawner::fork()?;
    let place = tempfile::tempdir()?;
    let directory = |name: &str| -> Outcome<Dir> {
        let path = place.path().join(name);
        std::fs::create_dir(&path)?;
        Ok(Dir::open_trusted(&path)?)
    };
    let (work, artifacts) = (directory("work")?, directory("artifacts")?);
    let bench = Bench {
        spawner,
        ground: Ground::look(),
        profile: profile(),
        work,
        artifacts,
        state: place.path().to_owned(),
    };
    let truth = order(&["/bin/true"]);
    let print = order(&["python3", "-c", "print(1)"]);

    let mut kept = bench.native(0)?.keep(&bench.spec(), &bench.state)?;
    kept.settle(Instant::now() + READY)?;
    let node_print = order(&["node", "-e", "console.log(1)"]);
    // In turn, so that whatever else this host does is done to all of them.
    let mut samples: [Vec<Duration>; 6] = Default::default();
    let mut round = 0;
    for turn in 0..TIMES + 10 {
        let taken = [
            process(&mut Command::new("/bin/true"))?,
            bench.once(next(&mut round), None, &truth)?,
            bench.again(&mut kept, &truth)?,
            process(Command::new("/usr/bin/python3").args(["-c", "print(1)"]))?,
            bench.once(next(&mut round), Some(preload(Language::Python)), &print)?,
            bench.once(next(&mut round), Some(preload(Language::Node)), &node_print)?,
        ];
        if turn >= 10 {
            samples
                .iter_mut()
                .zip(taken)
                .for_each(|(all, it)| all.push(it));
        }
    }
    drop(kept);
    let names = [
        "a plain process (vfork and exec)",
        "warm: bind and run",
        "kept: run",
        "a plain python3",
        "warm Python: bind and run",
        "warm Node: bind and run",
    ];
    let plain = median(&mut samples[0]);
    for (name, samples) in names.iter().zip(&mut samples) {
        let middle = median(samples);
        println!(
            "{name}: shortest {:?}, median {middle:?} ({:.2} of a plain process)",
            samples[0],
            middle.as_secs_f64() / plain.as_secs_f64()
        );
    }
    memory("native", &bench.warm(round + 1, None)?);
    let python = bench.warm(round + 2, Some(preload(Language::Python)))?;
    memory("Python", &python);
    let node = bench.warm(round + 3, Some(preload(Language::Node)))?;
    memory("Node", &node);
    Ok(())
}

struct Bench {
    spawner: Spawner,
    ground: Ground,
    profile: Profile,
    work: Dir,
    artifacts: Dir,
    state: std::path::PathBuf,
}

impl Bench {
    fn native(&self, round: usize) -> Outcome<Native> {
        let mut native = Native::spawn(&self.ground, &self.spawner)?;
        native.reserve(&format!("glovebox-warm-{}-{round}", std::process::id()))?;
        Ok(native)
    }

    fn spec(&self) -> Spec<'_> {
        Spec {
            work: Place::Later(Access::Rw),
            inputs: Place::Later(Access::Ro),
            artifacts: Place::Later(Access::Rw),
            ..Spec::new(&self.profile)
        }
    }

    fn room(&self) -> ExecDirs<'_> {
        ExecDirs {
            work: Some(&self.work),
            inputs: None,
            artifacts: &self.artifacts,
        }
    }

    fn warm(&self, round: usize, preload: Option<Preload>) -> Outcome<Warm> {
        let native = self.native(round)?;
        let mut warm = native.warm(&self.spec(), &self.state, preload)?;
        warm.settle(Instant::now() + READY)?;
        std::thread::sleep(REST);
        Ok(warm)
    }

    fn again(&self, kept: &mut KeptNative, order: &Order) -> Outcome<Duration> {
        std::thread::sleep(REST);
        let started = Instant::now();
        self.run(|run| kept.run(self.room(), run), order)?;
        Ok(started.elapsed())
    }

    fn once(&self, round: usize, preload: Option<Preload>, order: &Order) -> Outcome<Duration> {
        let mut warm = self.warm(round, preload)?;
        let mut remains = None;
        let started = Instant::now();
        assert!(warm.is_alive());
        let bound = Box::new(warm.bind(&self.room())?);
        self.run(
            |run| {
                let (ended, left) = bound.run(run);
                remains = Some(left);
                ended
            },
            order,
        )?;
        let took = started.elapsed();
        drop(remains);
        Ok(took)
    }

    fn run(
        &self,
        run: impl FnOnce(Run<'_>) -> glovebox_model::Result<glovebox_backend::Ended>,
        order: &Order,
    ) -> Outcome<()> {
        let (cancel, _canceler) = Cancel::new()?;
        let ended = run(Run {
            order,
            profile: &self.profile,
            watched: &[&self.work, &self.artifacts],
            stdin: None,
            terminal: None,
            secrets: &[],
            sink: &mut Nothing,
            cancel: &cancel,
            control: None,
        })?;
        assert_eq!(ended.ending, Ending::Exited { code: 0 });
        Ok(())
    }
}

struct Nothing;

impl Sink for Nothing {
    fn output(&mut self, _: Stream, _: &[u8]) {}
}

fn text(text: &str) -> ByteString {
    ByteString::try_from(text).unwrap_or_default()
}

fn order(argv: &[&str]) -> Order {
    Order {
        argv: argv.iter().map(|it| text(it)).collect(),
        env: [("HOME", "/home/sandbox"), ("LC_ALL", "C.UTF-8")]
            .map(|(key, value)| (text(key), text(value)))
            .to_vec(),
        cwd: text("/workspace/work"),
        path: vec![text("/usr/bin"), text("/bin")],
    }
}

fn preload(language: Language) -> Preload {
    let command = match language {
        Language::Python => "python3",
        Language::Node => "node",
    };
    let Order { env, path, .. } = order(&[]);
    Preload {
        language,
        command: text(command),
        env,
        path,
    }
}

fn profile() -> Profile {
    Profile {
        limits: Limits {
            wall_ms: Millis::secs(60),
            session_ms: Millis::secs(60),
            cpu_ms: Millis::secs(60),
            memory_bytes: Bytes::mib(512),
            pids: Count(256),
            cpus_milli: Cpus::whole(2),
            disk_bytes: Bytes::mib(64),
            disk_files: Count(10_000),
            stdout_bytes: Bytes::mib(1),
            stderr_bytes: Bytes::mib(1),
            artifacts_bytes: Bytes::mib(1),
            open_files: Count(1024),
            gpus: Count(0),
            tpus: Count(0),
            egress_bytes: Bytes::mib(64),
            egress_connections: Count(100),
            network_ms: Millis::secs(60),
        },
        network: NetworkMode::None,
        allow_net: BTreeSet::new(),
        workspace: Access::Rw,
        env_allow: BTreeSet::new(),
        tier: Tier::Low,
        security: SecurityMode::default(),
        limits_demand: LimitsDemand::Kernel,
        approval: glovebox_model::ApprovalMode::default(),
        require: BTreeSet::new(),
        backend: None,
        runtime: None,
        image: None,
    }
}

fn next(round: &mut usize) -> usize {
    *round += 1;
    *round
}

fn process(command: &mut Command) -> Outcome<Duration> {
    std::thread::sleep(REST);
    let started = Instant::now();
    command.stdin(Stdio::null()).output()?;
    Ok(started.elapsed())
}

fn median(samples: &mut [Duration]) -> Duration {
    samples.sort_unstable();
    samples[samples.len() / 2]
}

fn memory(name: &str, warm: &Warm) {
    let mut sum = 0;
    for pid in warm.pids() {
        let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
        let private: u64 = rollup
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("Private"))
            .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok())
            .sum();
        println!("{name}: process {pid} has {private} kB of its own");
        sum += private;
    }
    println!("{name}: {sum} kB in all");
}
