//! Asking policy without running anything.

use crate::trial::Trial;

#[test]
fn a_decision_comes_with_its_fields_and_an_exit_code() {
    let trial = Trial::new();
    let allowed = trial
        .run(&["policy", "explain", "--memory", "64M", "--", "make"])
        .exits(0);
    assert!(
        allowed.stdout.starts_with("decision: allow\n"),
        "{allowed:?}"
    );
    let memory = allowed
        .stdout
        .lines()
        .find(|line| line.starts_with("memory "))
        .unwrap();
    assert!(
        memory.contains("64M") && memory.contains("the request"),
        "{memory}"
    );

    let denied = trial
        .run(&["policy", "explain", "--pids", "99999", "--", "make"])
        .exits(3);
    assert!(denied.stdout.starts_with("decision: deny\n"), "{denied:?}");
    assert!(denied.stdout.contains("hint: ask for"), "{denied:?}");
    let args = [
        "policy", "explain", "--pids", "99999", "--json", "--", "make",
    ];
    let answer = trial.run(&args).exits(3).json();
    assert_eq!(answer["decision"], "deny");
    assert_eq!(answer["code"], "policy_denied");
    let capped = [
        "policy",
        "explain",
        "--pids",
        "99999",
        "--on-exceed",
        "cap",
        "--",
        "make",
    ];
    assert!(
        trial
            .run(&capped)
            .exits(0)
            .stdout
            .contains("capped: pids from 99999")
    );
}

#[test]
fn the_line_that_decided_is_named() {
    let trial = Trial::new();
    let config = trial.file("team.toml", "[settings]\n# few\npids = 7\n");
    let config = config.to_str().unwrap();
    let args = ["--config", config, "policy", "explain", "--", "make"];
    let pids = trial.run(&args).exits(0).stdout;
    let pids = pids.lines().find(|line| line.starts_with("pids ")).unwrap();
    assert!(
        pids.contains(&format!("the settings ({config}:3)")),
        "{pids}"
    );
    let args = [
        "--config", config, "policy", "explain", "--pids", "8", "--", "make",
    ];
    let denied = trial.run(&args).exits(3);
    assert!(
        denied.stdout.contains(&format!("--> {config}:3")),
        "{denied:?}"
    );
}

#[test]
fn explaining_decides_as_running_does() {
    let trial = Trial::new();
    for options in [
        &["--pids", "9"][..],
        &["--pids", "99999"],
        &["--tier", "high", "--net", "allowlist"],
    ] {
        let with = |head: [&'static str; 2]| [&head, options, &["--", "true"]].concat();
        let explained = trial.run(&with(["policy", "explain"])).code;
        let ran = trial.run(&with(["run", "--scratch"])).code;
        assert_eq!(explained, ran, "{options:?}");
    }
}

#[test]
fn a_good_file_is_summed_up() {
    let trial = Trial::new();
    let good = trial.file(
        "good.toml",
        "[settings]\nmemory = \"1G\"\n[user.dana]\npids = 5\n",
    );
    let good = good.to_str().unwrap();
    let answer = trial.run(&["policy", "check", good]).exits(0);
    assert_eq!(
        answer.stdout,
        format!("`{good}` is good\n[settings] memory\n[user.dana] pids\n")
    );
    let answer = trial
        .run(&["policy", "check", "--json", good])
        .exits(0)
        .json();
    assert_eq!(answer["sections"][1]["name"], "user.dana");
}

#[test]
fn a_wrong_file_says_where_and_what_was_meant() {
    let trial = Trial::new();
    let check = |content: &str| {
        let file = trial.file("wrong.toml", content);
        trial
            .run(&["policy", "check", file.to_str().unwrap()])
            .exits(2)
            .stderr
    };
    let typo = check("[settings]\nmemroy = \"1G\"\n");
    assert!(
        typo.contains("wrong.toml:2:1") && typo.contains("did you mean `memory`?"),
        "{typo}"
    );
    let value = check("[settings]\npids = 5\nmemory = \"lots\"\n");
    assert!(value.contains("wrong.toml:3:10"), "{value}");
    let syntax = check("[settings\n");
    assert!(syntax.contains("wrong.toml:1:"), "{syntax}");
    let above = check("[settings]\npids = 40000\n");
    assert!(above.contains("above the ceiling"), "{above}");

    let refused = trial.run(&["policy", "check", "/nowhere.toml"]).exits(2);
    assert!(
        refused.stderr.contains("cannot use the configuration"),
        "{refused:?}"
    );
    let file = trial.file("wrong.toml", "[settings]\nmemroy = 1\n");
    let refused = trial
        .run(&["policy", "check", "--json", file.to_str().unwrap()])
        .exits(2);
    let error: serde_json::Value = serde_json::from_str(&refused.stderr).unwrap();
    assert_eq!(error["error"]["code"], "invalid_config");
    assert_eq!(error["error"]["rule"]["line"], 2);
}
