//! Two sandboxes at the same time see nothing of each other.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use support::{Caller, Trial, python, wait_until};

fn meet(caller: Caller) {
    let (Some(first), Some(second)) = (Trial::new(caller), Trial::new(caller)) else {
        return;
    };
    let port = (20_000 + std::process::id() % 20_000).to_string();
    let start = |trial: &Trial, me: &str, other: &str| {
        trial.put("cross.py", include_str!("cross.py"));
        trial.run([python(), "cross.py", me, other, &port]).spawn()
    };
    let children = [start(&first, "1", "2"), start(&second, "2", "1")];
    let offered = [&first, &second].map(|trial| trial.work().join("offered"));
    let both = wait_until(Duration::from_secs(60), || {
        offered.iter().all(|file| file.exists())
    });
    for trial in [&first, &second] {
        fs::write(trial.work().join("go"), "").unwrap();
    }
    for child in children {
        let output = child.wait_with_output().unwrap();
        let said: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        assert_eq!(
            said["found"],
            serde_json::json!([]),
            "{caller:?}: channels between sandboxes"
        );
        assert_eq!(said["met"], true);
    }
    assert!(both, "the two never ran at the same time");
    first.end();
    second.end();
}

#[test]
fn two_sandboxes_of_root_share_no_channel() {
    meet(Caller::Root);
}

#[test]
fn two_sandboxes_of_one_user_share_no_channel() {
    meet(Caller::User);
}
