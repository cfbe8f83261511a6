//! How long a caller waits for a keeper, and what one that waits costs. By hand:
//! `cargo run -p glovebox-cage --example spawn_latency`

#![expect(clippy::print_stdout, reason = "a report")]

use std::time::{Duration, Instant};

use glovebox_cage::{After, Event, Ids, Opener, Plan, Spawner};

/// Longer than it takes to prepare the next.
const REST: Duration = Duration::from_millis(30);
const TIMES: usize = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spawner = Spawner::fork()?;
    let (mut spawned, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        std::thread::sleep(REST);
        let sample = Sample::take(&spawner)?;
        spawned.push(sample.spawned);
        answered.push(sample.answered);
    }
    report("prepared ahead: spawned", &mut spawned);
    report("prepared ahead: answered", &mut answered);

    // A rush: the stock is empty soon.
    let mut held = Vec::new();
    while held.len() < 32 {
        held.push(spawner.spawn()?);
    }
    let (mut spawned, mut answered) = (Vec::new(), Vec::new());
    for _ in 0..TIMES {
        let sample = Sample::take(&spawner)?;
        spawned.push(sample.spawned);
        answered.push(sample.answered);
    }
    report("forked for it: spawned", &mut spawned);
    report("forked for it: answered", &mut answered);

    std::thread::sleep(10 * REST);
    for handle in held.iter().take(2) {
        let pid = handle.keeper_pid();
        let memory = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup"));
        let private: Vec<String> = memory
            .unwrap_or_default()
            .lines()
            .filter(|line| line.starts_with("Pss:") || line.starts_with("Private"))
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        println!("keeper {pid}: {}", private.join(", "));
    }
    Ok(())
}

struct Sample {
    spawned: Duration,
    /// Until the keeper was prepared and had taken its plan.
    answered: Duration,
}

impl Sample {
    fn take(spawner: &Spawner) -> Result<Self, Box<dyn std::error::Error>> {
        let started = Instant::now();
        let handle = spawner.spawn()?;
        let spawned = started.elapsed();
        handle.build(impossible(), &[])?;
        let event = handle.next_control()?;
        assert!(matches!(event, Event::Failed(_)), "{event:?}");
        let answered = started.elapsed();
        Ok(Self { spawned, answered })
    }
}

/// Answered at once: its group does not exist.
fn impossible() -> Plan {
    Plan {
        namespaces: Vec::new(),
        ids: Ids {
            inner: 1000,
            outer_uid: 1000,
            outer_gid: 1000,
            deny_setgroups: false,
        },
        cgroup: Some(c"/nonexistent".into()),
        opener: Opener::Init,
        steps: Vec::new(),
        payload: Vec::new(),
        after: After::End,
    }
}

fn report(name: &str, samples: &mut [Duration]) {
    samples.sort_unstable();
    let at = |part: usize| samples[(samples.len() - 1) * part / 100];
    println!(
        "{name}: median {:?}, 95th of a hundred {:?}, longest {:?}",
        at(50),
        at(95),
        at(100)
    );
}
