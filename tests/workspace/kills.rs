//! `kill -9` while changes are carried over: the next exec finds what was begun finished, and
//! what was not begun still waits.

use crate::ground::{Ended, Ground, assert_same};

const PAUSES: &str = "GLOVEBOX_KILL_AT";
const CHANGE: &str = "echo changed > src/main.py; rm nothing; mkdir -p made/deep; \
                      echo x > made/deep/x; mv .hidden moved; rm -rf empty; echo file > empty";

/// At every so many-th moment; all of them by `GLOVEBOX_TEST_KILLS`.
fn step() -> usize {
    match std::env::var_os("GLOVEBOX_TEST_KILLS") {
        Some(_) => 1,
        None => 3,
    }
}

#[test]
fn killed_while_it_keeps_the_next_exec_finds_it_finished() {
    let (mut killed, mut finished, mut untouched) = (0, 0, 0);
    for moment in (1..).step_by(step()) {
        let ground = Ground::root("");
        ground.plant();
        let record = ground.run(&["--hold"], CHANGE);
        let exec = record["exec_id"].as_str().unwrap();
        let before = ground.tree();
        let mut keep = ground.command(&["workspace", "keep", exec]);
        let ended = Ended::of(keep.env(PAUSES, moment.to_string()).output().unwrap());
        if !ended.killed {
            ended.assert_code(0);
            ground.trial.end();
            break;
        }
        killed += 1;
        ground.start();
        let waits = ground.glovebox(&["workspace", "changes", exec]).code == 0;
        match ground.tree() == before {
            true => {
                assert!(waits, "at {moment}: neither kept nor waiting");
                untouched += 1;
            }
            false => finished += 1,
        }
        if waits {
            ground.json(&["workspace", "keep", exec]);
        }
        assert_changed(&ground, moment);
        nothing_is_left(&ground, moment);
        ground.trial.end();
    }
    println!("{killed} kills: {finished} finished by the next exec, {untouched} still waited");
    assert!(finished > 0 && untouched > 0, "{finished}, {untouched}");
}

#[test]
fn killed_while_a_success_is_kept_nothing_is_half_there() {
    let mut killed = 0;
    for moment in (2..).step_by(3 * step()) {
        let ground = Ground::root("");
        ground.plant();
        let before = ground.tree();
        let words = [
            "--json",
            "run",
            "--toolchain",
            "off",
            "--keep-if-ok",
            "--",
            "/bin/sh",
            "-c",
            CHANGE,
        ];
        let mut command = ground.command(&words);
        let ended = Ended::of(command.env(PAUSES, moment.to_string()).output().unwrap());
        if !ended.killed {
            ended.assert_code(0);
            ground.trial.end();
            break;
        }
        killed += 1;
        // Whoever finds that it is lost finishes what it had begun, wherever that one works.
        ground.run(&["--scratch"], "true");
        let lost = ground.json(&["ps", "--status", "lost"]);
        let lost = lost["items"][0]["exec_id"].as_str().expect("a lost one");
        let now = ground.tree();
        let said = ground.glovebox(&["audit", "query", "--exec", lost]).stdout;
        if now == before {
            // Not begun: it waits, and did not succeed.
            let info = ground.json(&["workspace", "info"]).to_string();
            assert!(info.contains(lost), "at {moment}: nothing waits: {info}");
            ground.glovebox(&["workspace", "keep", lost]).assert_code(6);
        } else {
            assert_changed(&ground, moment);
            assert!(said.contains("changes.kept"), "at {moment}: {said}");
        }
        nothing_is_left(&ground, moment);
        ground.trial.end();
    }
    assert!(killed > 0, "nothing was killed");
}

#[track_caller]
fn assert_changed(ground: &Ground, moment: usize) {
    let control = Ground::root("");
    control.plant();
    control.run(&[], CHANGE);
    let brief = |ground: &Ground| -> Vec<String> {
        let tree = ground.tree();
        let of = tree
            .iter()
            .map(|(path, it)| format!("{path:?} {}", it.brief()));
        of.collect()
    };
    assert_eq!(brief(ground), brief(&control), "at {moment}");
    control.trial.end();
}

#[track_caller]
fn nothing_is_left(ground: &Ground, moment: usize) {
    let before = ground.tree();
    let ours: Vec<_> = before
        .keys()
        .filter(|path| path.to_string_lossy().contains(".glovebox"))
        .collect();
    assert!(ours.is_empty(), "at {moment}: {ours:?}");
    let notes = std::fs::read_dir(ground.trial.state().join("unfinished"));
    assert_eq!(
        notes.into_iter().flatten().count(),
        0,
        "at {moment}: a note is left"
    );
    ground.start();
    assert_same(&ground.tree(), &before, "a further exec changes nothing");
}
