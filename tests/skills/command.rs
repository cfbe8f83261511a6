//! Skills of one's own, from the command line.

use std::fs;

use serde_json::json;
use support::{Caller, Trial};

use crate::ground::{call, root, skill, write};

const ECHO: &str = "
import json, os, sys
given = json.load(open(os.environ['GLOVEBOX_SKILL_INPUT']))
assert os.path.dirname(os.path.abspath(sys.argv[0])) == os.environ['GLOVEBOX_SKILL_DIR']
json.dump({'text': given.get('text')}, open('/workspace/artifacts/output.json', 'w'))
";

#[test]
fn a_changed_skill_is_another_one_from_the_next_call_on() {
    let trial = Trial::new(Caller::Root).unwrap();
    let root = root(&trial);
    let outputs = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    write(&root, "test.echo", ECHO, &outputs);
    let (code, first) = call(&trial, &["run", "test.echo", "text={input.text}; $(id)"]);
    assert_eq!(code, Some(0), "{first}");
    assert_eq!(first["output"]["text"], "{input.text}; $(id)");
    write(
        &root,
        "test.echo",
        &ECHO.replace("given.get('text')", "'new'"),
        &outputs,
    );
    let (_, second) = call(&trial, &["run", "test.echo", "text=old"]);
    assert_eq!(second["output"]["text"], "new", "{second}");
    assert_ne!(first["skill"]["digest"], second["skill"]["digest"]);
    // What it was called with is gone with the exec; only the skill's files stay.

    let left = named_below(&trial.state(), &|name| {
        name.ends_with(".json") && name.starts_with("e_")
    });
    assert_eq!(left, Vec::<String>::new());
    trial.end();
}

/// The names of all files below that fit.
fn named_below(dir: &std::path::Path, fits: &dyn Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type().unwrap().is_dir() {
            found.extend(named_below(&entry.path(), fits));
        } else if fits(&name) {
            found.push(name);
        }
    }
    found
}

#[test]
fn an_answer_that_is_not_what_was_promised_is_a_failure_that_says_where() {
    let trial = Trial::new(Caller::Root).unwrap();
    let outputs =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    for (id, program, words) in [
        ("test.wrong", "print('{\"n\": \"x\"}')", "`/n`"),
        ("test.none", "print('hello')", "printed no JSON"),
        (
            "test.large",
            "print(open('/workspace/artifacts/output.json', 'w').write(' ' * 1100000))",
            "larger than",
        ),
    ] {
        write(&root(&trial), id, program, &outputs);
        let (code, answer) = call(&trial, &["run", id]);
        assert_eq!(code, Some(1), "{answer}");
        assert_eq!(answer["output_valid"], false);
        assert_eq!(answer["output_error"]["code"], "invalid_output");
        let said = answer["output_error"]["message"].as_str().unwrap();
        assert!(said.contains(words), "{said}");
        assert_eq!(answer["status"], "succeeded");
    }
    trial.end();
}

#[test]
fn nothing_starts_when_the_input_or_the_manifest_is_wrong() {
    let trial = Trial::new(Caller::Root).unwrap();
    let root = root(&trial);
    write(&root, "test.echo", ECHO, &json!({}));
    fs::create_dir(root.join("test.broken")).unwrap();
    fs::write(root.join("test.broken/manifest.json"), "{}").unwrap();
    for (words, code) in [
        (
            &["run", "test.echo", "text=x", "--inputs", "[]"][..],
            "invalid_argument",
        ),
        (
            &["run", "test.echo", "--inputs", "{\"text\": 1}"],
            "invalid_input",
        ),
        (&["run", "shell.run"], "invalid_input"),
        (&["run", "shell.run", "script=x", "more=1"], "invalid_input"),
        (&["run", "test.broken"], "invalid_manifest"),
        (&["run", "test.nothing"], "not_found"),
        (&["run", "../test.echo"], "not_found"),
        (
            &["run", "shell.run", "script=x", "--env", "A=b"],
            "invalid_argument",
        ),
    ] {
        let (_, error) = call(&trial, words);
        assert_eq!(error["error"]["code"], code, "{words:?}: {error}");
    }
    let ran = trial
        .glovebox()
        .args(["ps", "--all", "--json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(!said.contains("exec_id"), "{said}");
    let (_, listed) = call(&trial, &["ls"]);
    assert_eq!(listed["invalid"][0]["dir"], "test.broken");
    trial.end();
}

#[test]
fn a_skill_is_checked_and_taken_in_from_a_directory_or_an_archive() {
    let trial = Trial::new(Caller::Root).unwrap();
    let source = trial.home().join("source");
    fs::create_dir_all(source.join("tidy-up/scripts")).unwrap();
    let text = "---\nname: tidy-up\ndescription: Tidies up.\n---\nRun `tidy.sh`.\n";
    fs::write(source.join("tidy-up/SKILL.md"), text).unwrap();
    fs::write(
        source.join("tidy-up/scripts/tidy.sh"),
        "echo \"tidy: $1\"\n",
    )
    .unwrap();
    let made = std::process::Command::new("tar")
        .args(["czf", "tidy-up.tar.gz", "tidy-up"])
        .current_dir(&source)
        .status()
        .unwrap();
    assert!(made.success());
    let archive = source.join("tidy-up.tar.gz");
    let (code, added) = call(&trial, &["add", archive.to_str().unwrap()]);
    assert_eq!(
        (code, &added["skill"]["id"]),
        (Some(0), &json!("md.tidy.up")),
        "{added}"
    );
    let (code, again) = call(&trial, &["add", archive.to_str().unwrap()]);
    assert_eq!(
        (code, &again["error"]["code"]),
        (Some(2), &json!("conflict")),
        "{again}"
    );
    let words = ["run", "md.tidy.up", "script=tidy.sh", "args=[\"a b\"]"];
    let (code, answer) = call(&trial, &words);
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!(answer["output"]["stdout"], "tidy: a b\n");
    let (_, info) = call(&trial, &["info", "md.tidy.up"]);
    assert_eq!(info["instructions"], "Run `tidy.sh`.");
    let there = root(&trial).join("md.tidy.up");
    let (code, checked) = call(&trial, &["check", there.to_str().unwrap()]);
    assert_eq!(
        (code, &checked["valid"]),
        (Some(0), &json!(true)),
        "{checked}"
    );
    fs::write(
        there.join("manifest.json"),
        "{\n  \"id\": 1,\n  \"id\": 2\n}",
    )
    .unwrap();
    let (code, checked) = call(&trial, &["check", there.to_str().unwrap()]);
    assert_eq!(code, Some(1));
    assert_eq!(checked["problems"][0]["line"], 3, "{checked}");
    trial.end();
}

#[test]
fn a_skill_that_may_do_more_than_the_one_before_it_is_asked_about() {
    let trial = Trial::new(Caller::Root).unwrap();
    let source = trial.home().join("source");
    let make = |id: &str, timeout: u64, writes: &[&str]| {
        let dir = source.join(id);
        fs::create_dir_all(&dir).unwrap();
        let manifest = json!({
            "schema_version": "1.0", "id": id, "name": "n", "description": "d",
            "runtime": {"kind": "any", "entrypoint": ["true"]},
            "interface": {"inputs": {"type": "object"}, "outputs": {"type": "object"}},
            "permissions": {"fs": {"read": ["work/**"], "write": writes}, "net": {"mode": "none"}},
            "limits": {"timeout_ms": timeout, "memory_mb": 64, "cpu_cores": 1, "pids": 16,
                       "max_stdout_bytes": 1000, "max_stderr_bytes": 1000,
                       "max_artifacts_bytes_total": 0},
        });
        fs::write(dir.join("manifest.json"), manifest.to_string()).unwrap();
        dir.to_str().unwrap().to_owned()
    };
    let add = |dir: &str, more: &[&str]| call(&trial, &[&["add", dir], more].concat());
    let digest = || call(&trial, &["info", "my.own"]).1["digest"].clone();
    let first = make("my.own", 3000, &[]);
    assert_eq!(add(&first, &[]).0, Some(0));
    // Less, and the same, are not asked about.
    assert_eq!(add(&make("my.own", 2000, &[]), &["--replace"]).0, Some(0));
    let before = digest();
    for (timeout, writes, told) in [
        (2001, &[][..], "timeout ms: 2000 -> 2001 (more)"),
        (2000, &["work/**"], "writes: - -> work/** (more)"),
    ] {
        let wider = make("my.own", timeout, writes);
        // There is no terminal here.
        let (code, refused) = add(&wider, &["--replace"]);
        assert_eq!(code, Some(2), "{refused}");
        let said = refused["error"]["message"].as_str().unwrap();
        assert!(said.contains(told), "{said}");
        assert_eq!(digest(), before, "the old one stays");
    }
    let (code, added) = add(&make("my.own", 2000, &["work/**"]), &["--replace", "--yes"]);
    assert_eq!(
        (code, &added["changed"][0]["wider"]),
        (Some(0), &json!(true))
    );
    // One that cannot be read may have been allowed less.
    fs::write(root(&trial).join("my.own/manifest.json"), "{}").unwrap();
    assert_eq!(add(&first, &["--replace"]).0, Some(2));
    // The place of one that came with Glovebox, also with less.
    let taken = make("shell.run", 1000, &[]);
    let (code, refused) = add(&taken, &[]);
    assert_eq!(code, Some(2), "{refused}");
    assert!(
        refused.to_string().contains("comes with Glovebox"),
        "{refused}"
    );
    assert!(!root(&trial).join("shell.run").exists());
    assert_eq!(add(&taken, &["--yes"]).0, Some(0));
    trial.end();
}

#[test]
fn a_pin_and_the_policy_of_tools_hold() {
    let trial = Trial::new(Caller::Root).unwrap();
    let config = trial.home().join("config.toml");
    let with = |text: &str, words: &[&str]| {
        fs::write(&config, text).unwrap();
        let config = config.to_str().unwrap();
        let mut all = vec!["--config", config, "--json"];
        all.extend(words);
        let done = skill(&trial, &all);
        (
            done.status.code(),
            String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned(),
        )
    };
    let run = &["run", "shell.run", "script=echo ran"];
    let pin = format!(
        "[skills]\npin = {{\"shell.run\" = \"sha256:{}\"}}",
        "0".repeat(64)
    );
    let (code, said) = with(&pin, run);
    assert!(code == Some(2) && said.contains("pinned"), "{said}");
    let (code, said) = with("[tools]\ndeny = [\"skill.shell.*\"]", run);
    assert!(code == Some(3) && said.contains("skill.shell"), "{said}");
    assert!(said.contains("tools.deny"), "the way out is named: {said}");
    let (code, said) = with("[skills]\nshipped = false", run);
    assert!(
        code == Some(2) && said.contains("skills_not_configured"),
        "{said}"
    );
    // A skill's own limit narrows, and the operator's narrows further.
    let (code, said) = with("[settings]\nmemory = \"200M\"", run);
    assert!(
        code == Some(0) && said.contains("\"memory_bytes\":209715200"),
        "{said}"
    );
    let (code, said) = with("", &["run", "shell.run", "script=true", "--memory", "2G"]);
    assert!(
        code == Some(3) && said.contains("skill `shell.run`"),
        "{said}"
    );
    trial.end();
}

#[test]
fn what_is_not_right_has_a_row_and_goes_when_it_is_told_to() {
    let trial = Trial::new(Caller::Root).unwrap();
    let root = root(&trial);
    let outputs = json!({"type": "object"});
    write(&root, "test.pinned", ECHO, &outputs);
    fs::create_dir(root.join("test.broken")).unwrap();
    fs::write(root.join("test.broken/manifest.json"), "{}").unwrap();
    let config = trial.home().join("config.toml");
    let zeros = "0".repeat(64);
    let pins = format!(
        "[skills]\npin = {{\"test.pinned\" = \"sha256:{zeros}\", \"test.pined\" = \"sha256:{zeros}\"}}"
    );
    fs::write(&config, pins).unwrap();
    let said = |words: &[&str]| {
        let mut all = vec!["--skills-dir", root.to_str().unwrap()];
        all.extend(["--config", config.to_str().unwrap()]);
        all.extend(words);
        let done = skill(&trial, &all);
        String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned()
    };
    let listed = said(&["ls"]);
    let row = |id: &str| {
        let found = listed.lines().find(|it| it.starts_with(id));
        found.unwrap_or_else(|| panic!("{listed}")).to_owned()
    };
    assert!(row("test.broken").contains("no "), "{listed}");
    assert!(row("test.pinned").contains("not the one that is pinned"));
    assert!(listed.contains("`test.pined` is pinned, and there is no such skill"));

    let there = root.join("test.broken");
    let checked = said(&["check", there.to_str().unwrap()]);
    assert!(
        checked.contains("test.broken/manifest.json:1: "),
        "{checked}"
    );
    let checked = said(&["check", root.to_str().unwrap()]);
    assert!(
        checked.contains("/skills: there is no `manifest.json`"),
        "{checked}"
    );

    let (code, gone) = call(&trial, &["rm", "test.broken"]);
    assert_eq!((code, &gone["id"]), (Some(0), &json!("test.broken")));
    assert!(!there.exists());
    for (id, refusal) in [
        ("test.broken", "not_found"),
        ("shell.run", "conflict"),
        ("../skills", "not_found"),
        ("..", "not_found"),
    ] {
        let (_, error) = call(&trial, &["rm", id]);
        assert_eq!(error["error"]["code"], refusal, "{id}: {error}");
    }
    let left = named_below(&root, &|name| name == "run.py");
    assert_eq!(left.len(), 1);
    trial.end();
}

/// Removes what it is told to.
const REMOVES: &str = "
import subprocess
subprocess.run(['rm', '-f', 'x'])
";

#[test]
fn the_files_of_a_skill_are_read_before_a_person_is_asked() {
    let trial = Trial::new(Caller::Root).unwrap();
    trial.put("notes.txt", "needle\n");
    let root = root(&trial);
    write(&root, "test.removes", REMOVES, &json!({}));
    let config = trial.home().join("config.toml");
    fs::write(
        &config,
        "[[rule]]\ndecision = \"ask\"\ncommand = [\"rm\"]\n",
    )
    .unwrap();
    let run = |words: &[&str]| {
        call(
            &trial,
            &[&["--config", config.to_str().unwrap(), "run"], words].concat(),
        )
    };
    let (code, answer) = run(&["text.search", "pattern=needle"]);
    assert_eq!(code, Some(0), "{answer}");
    assert_eq!(answer["output"]["matches"][0]["path"], "notes.txt");
    let (_, answer) = run(&["test.removes"]);
    let code = &answer["exec"]["error"]["code"];
    assert_eq!(code, "approval_unavailable", "{answer}");
    trial.end();
}
