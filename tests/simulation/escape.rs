//! The escape probes in a simulation: what is new there is a supervisor that reads the program's
//! memory, a socket to tell of oneself, and a network that answers everything.

use support::{
    Caller, Fixtures, Row, Trial, Verdict, inside, parse_rows, print_table, probe_source, python,
};

/// A simulated network answers whoever asks and is made known by variables, so these find what they
/// look for; that nobody outside heard of it is seen on the host, and on the wire in `quiet.rs`.
const ANSWERED: [&str; 3] = ["names-of-the-internet", "a-route-out", "the-environment"];
const MAY_SKIP: [&str; 3] = [
    "a-set-user-id-program",
    "a-signal-to-the-host",
    "a-pidfd-of-the-host",
];

fn probe(caller: Caller) {
    let Some(trial) = Trial::in_memory(caller) else {
        return;
    };
    let mut fixtures = Fixtures::new(&trial);
    trial.put("probe.py", probe_source());
    let mut command = vec!["/usr/bin/env".to_owned()];
    command.extend(inside(&fixtures, &trial));
    command.push("PROBE_FIRST=1".to_owned());
    command.extend([python(), "probe.py"].map(str::to_owned));
    let output = trial
        .run(command)
        .with([
            "--pids",
            "64",
            "--memory",
            "512M",
            "--timeout",
            "120s",
            "--simulate",
        ])
        .outside("HOST_ENVIRONMENT", &fixtures.secret)
        .plain();
    let rows = parse_rows(&output.stdout);
    fixtures.assert_untouched(caller);
    let control = fixtures.control(&trial);
    print_table(&rows, &control);
    let bad: Vec<&Row> = rows
        .iter()
        .filter(|row| match row.verdict {
            Verdict::Held | Verdict::Noted => false,
            Verdict::Skipped => !MAY_SKIP.contains(&row.id.as_str()),
            Verdict::Crossed => !ANSWERED.contains(&row.id.as_str()),
        })
        .collect();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(rows.len() > 90, "only {} probes ran: {said}", rows.len());
    assert!(bad.is_empty(), "{bad:#?}");
    let crossed = control.iter().filter(|row| row.verdict == Verdict::Crossed);
    assert!(crossed.count() > 40, "the control is held too");
    drop(fixtures);
    trial.end();
}

#[test]
fn our_probes_are_held_in_a_simulation() {
    probe(Caller::Root);
}

#[test]
fn our_probes_are_held_in_an_ordinary_users_simulation() {
    probe(Caller::User);
}
