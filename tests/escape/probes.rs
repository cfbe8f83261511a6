//! Our own probes and, where it lies beside the repository, the corpus of probes.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::Instant;

use support::{Caller, Fixtures, Row, Trial, Verdict, bundle_rows, own_probe, print_table, python};

/// Probes that may be skipped, and why that is no hole.
const MAY_SKIP: &[(&str, &str)] = &[
    ("a-set-user-id-program", "the host may have none"),
    (
        "a-signal-to-the-host",
        "the sentinel's pid may be one of ours inside",
    ),
    ("a-pidfd-of-the-host", "the same"),
    ("P055", "no terminal is there to type into"),
];

fn assert_held(rows: &[Row]) {
    let crossed: Vec<_> = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Crossed)
        .collect();
    assert!(crossed.is_empty(), "crossed: {crossed:#?}");
    let skipped: Vec<_> = rows
        .iter()
        .filter(|row| row.verdict == Verdict::Skipped)
        .collect();
    assert!(skipped.len() <= 5, "too many skipped: {skipped:#?}");
    for row in skipped {
        let known = MAY_SKIP.iter().find(|(id, _)| *id == row.id);
        let (_, reason) = known.unwrap_or_else(|| panic!("skipped without a reason: {row:?}"));
        println!("skipped {}: {} ({reason})", row.id, row.detail);
    }
}

/// Most of what is held inside is not outside, so the probes can tell.
fn assert_control_fails(inside: &[Row], outside: &[Row], least: usize) {
    let crossed = outside
        .iter()
        .filter(|row| row.verdict == Verdict::Crossed)
        .count();
    assert!(
        outside.len() >= inside.len(),
        "the control ran {} probes",
        outside.len()
    );
    assert!(
        crossed * 100 >= outside.len() * least,
        "only {crossed} of {} probes notice that there is no sandbox",
        outside.len()
    );
}

#[test]
fn our_probes_are_held_inside_and_cross_outside() {
    let started = Instant::now();
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    let inside = own_probe(&trial, &fixtures);
    fixtures.assert_untouched(Caller::Root);
    let owner = std::fs::metadata(trial.work().join(".probe-owner")).unwrap();
    // The workspace is root's own, so what is made in it is too; inside it was somebody else's.
    assert_eq!((owner.uid(), owner.gid()), (0, 0));
    let outside = fixtures.control(&trial);
    print_table(&inside, &outside);
    assert_held(&inside);
    assert_control_fails(&inside, &outside, 70);
    let counts = fixtures.counts();
    assert!(
        counts["tcp"].as_u64() > Some(0),
        "the control reached nothing: {counts}"
    );
    println!("took {:?}", started.elapsed());
    drop(fixtures);
    trial.end();
}

#[test]
fn the_corpus_of_probes_is_held_inside_and_crosses_outside() {
    let Some(bundle) = bundle_rows() else {
        println!("no corpus beside the repository; our own probes stand alone");
        return;
    };
    let started = Instant::now();
    let trial = Trial::new(Caller::Root).unwrap();
    let mut fixtures = Fixtures::new(&trial);
    trial.put("bundle.py", &bundle);
    let mut command = vec!["/usr/bin/env".to_owned()];
    command.extend(fixtures.corpus_environment(&trial, "/workspace/work"));
    command.extend([python(), "bundle.py", "--heavy"].map(str::to_owned));
    let limits = [
        "--pids",
        "64",
        "--memory",
        "256M",
        "--disk",
        "96M",
        "--open-files",
        "1024",
        "--timeout",
        "150s",
    ];
    let output = trial
        .run(command)
        .with(limits)
        .outside("HOST_ENVIRONMENT", &fixtures.secret)
        .plain();
    let inside = support::parse_rows(&output.stdout);
    fixtures.assert_untouched(Caller::Root);
    assert!(
        inside.len() > 40,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );

    // Without the heavy ones: outside nothing would stop them.
    let place = trial.home().join("outside");
    std::fs::create_dir(&place).unwrap();
    let control = std::process::Command::new("env")
        .args(fixtures.corpus_environment(&trial, &place.to_string_lossy()))
        .env("HOST_ENVIRONMENT", &fixtures.secret)
        .arg(python())
        .arg(trial.work().join("bundle.py"))
        .current_dir(&place)
        .output()
        .unwrap();
    let outside = support::parse_rows(&control.stdout);
    print_table(&inside, &outside);
    assert_held(&inside);
    let light: Vec<Row> = inside
        .iter()
        .filter(|row| !row.id.starts_with('R'))
        .cloned()
        .collect();
    assert_control_fails(&light, &outside, 50);
    println!("took {:?}", started.elapsed());
    drop(fixtures);
    trial.end();
}

#[test]
fn files_made_by_root_belong_to_the_owner_of_the_workspace() {
    const OWNER: u32 = 23_456;
    let trial = Trial::new(Caller::Root).unwrap();
    std::os::unix::fs::chown(trial.work(), Some(OWNER), Some(OWNER)).unwrap();
    let foreign = trial.put("foreign", "somebody else's");
    std::os::unix::fs::chown(&foreign, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&foreign, PermissionsExt::from_mode(0o644)).unwrap();
    let script = "touch made; mkdir below; id -u; stat -c %u made foreign; echo x >> foreign; \
                  chown 0 made; chmod 4755 made; exit 0";
    let output = trial.run(["/bin/sh", "-c", script]).plain();
    let said = String::from_utf8_lossy(&output.stdout);
    // Inside, the owner is the sandbox's user and anybody else is nobody.
    assert_eq!(
        said.split_whitespace().collect::<Vec<_>>(),
        ["1000", "1000", "65534"]
    );
    for name in ["made", "below"] {
        let facts = std::fs::metadata(trial.work().join(name)).unwrap();
        assert_eq!((facts.uid(), facts.gid()), (OWNER, OWNER), "{name}");
        assert_eq!(facts.mode() & 0o6000, 0, "{name}");
    }
    assert_eq!(
        std::fs::read_to_string(&foreign).unwrap(),
        "somebody else's"
    );
    trial.end();
}
