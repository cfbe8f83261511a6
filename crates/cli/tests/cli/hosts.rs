//! `glovebox mcp install`, as somebody types it, with a home directory of its own.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::terminal::Terminal;
use crate::trial::{Answer, Trial, names};

const HOSTS: [(&str, &str, &str); 4] = [
    ("claude", ".claude.json", ".mcp.json"),
    ("cursor", ".cursor/mcp.json", ".cursor/mcp.json"),
    ("codex", ".codex/config.toml", ".codex/config.toml"),
    ("vscode", ".config/Code/User/mcp.json", ".vscode/mcp.json"),
];

fn home(trial: &Trial) -> PathBuf {
    trial.state().parent().unwrap().to_owned()
}

fn install(trial: &Trial, words: &[&str]) -> Answer {
    trial.run(&[&["mcp", "install"], words].concat())
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn broken(host: &str) -> &'static str {
    match host {
        "codex" => "model = \n",
        _ => "{\"mcpServers\": ",
    }
}

#[test]
fn each_host_is_told_once() {
    for (host, own, project) in HOSTS {
        let trial = Trial::new();
        let path = home(&trial).join(own);
        let told = install(&trial, &[host, "--yes"]).exits(0).stdout;
        assert!(
            told.contains("a new file") && told.contains("knows `glovebox` now"),
            "{told}"
        );
        let text = fs::read_to_string(&path).unwrap();
        // The whole path of this very binary, and the state that it was called with.
        assert!(text.contains(env!("CARGO_BIN_EXE_glovebox")), "{text}");
        assert!(text.contains(trial.state().to_str().unwrap()), "{text}");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        let again = install(&trial, &[host, "--yes"]).exits(0).stdout;
        assert!(again.contains("says so already"), "{again}");
        assert_eq!(fs::read_to_string(&path).unwrap(), text);

        let path = trial.work().join(project);
        install(&trial, &[host, "--project-file", "--yes"]).exits(0);
        let text = fs::read_to_string(&path).unwrap();
        assert!(!text.contains(trial.state().to_str().unwrap()), "{text}");
        let mode = fs::metadata(&path).unwrap().mode();
        assert_eq!(mode & 0o700, 0o600);
        assert_eq!(
            names(path.parent().unwrap()).len(),
            1,
            "nothing is left behind"
        );
    }
}

#[test]
fn a_dry_run_changes_nothing_and_shows_all() {
    for (host, own, _) in HOSTS {
        let trial = Trial::new();
        let before = names(&home(&trial));
        let shown = install(&trial, &[host, "--dry-run"]).exits(0).stdout;
        assert!(
            shown.contains(own) && shown.contains("nothing was changed"),
            "{shown}"
        );
        let answer = install(&trial, &[host, "--dry-run", "--json", "--name", "box"]).exits(0);
        let plan = answer.json();
        assert_eq!(plan["host"], host);
        assert_eq!(plan["change"], "add");
        assert_eq!(plan["written"], false);
        assert!(plan["path"].as_str().unwrap().ends_with(own));
        assert!(plan["content"].as_str().unwrap().contains("box"), "{plan}");
        let mut after = names(&home(&trial));
        after.retain(|it| it != "empty.toml");
        assert_eq!(after, before, "{host}");
    }
}

#[test]
fn a_file_that_cannot_be_read_stays_and_the_way_out_is_shown() {
    for (host, own, _) in HOSTS {
        let trial = Trial::new();
        let path = home(&trial).join(own);
        write(&path, broken(host));
        let refused = install(&trial, &[host, "--yes"]).exits(2).stderr;
        assert!(refused.contains("stays as it is"), "{refused}");
        assert!(refused.contains("write this into it yourself"), "{refused}");
        assert!(refused.contains("glovebox"), "{refused}");
        assert_eq!(fs::read_to_string(&path).unwrap(), broken(host));
    }
}

#[test]
fn a_link_is_followed_to_its_file_and_stays_a_link() {
    for (host, own, _) in HOSTS {
        let trial = Trial::new();
        let path = home(&trial).join(own);
        let kept = home(&trial).join("dotfiles").join(host);
        write(&kept, "");
        fs::set_permissions(&kept, fs::Permissions::from_mode(0o640)).unwrap();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(&kept, &path).unwrap();
        let told = install(&trial, &[host, "--yes"]).exits(0).stdout;
        assert!(told.contains(kept.to_str().unwrap()), "{told}");
        assert!(path.is_symlink());
        assert!(fs::read_to_string(&kept).unwrap().contains("glovebox"));
        assert_eq!(fs::metadata(&kept).unwrap().mode() & 0o777, 0o640);
    }
}

#[test]
fn links_do_not_lead_where_others_write_nor_out_of_a_project() {
    let trial = Trial::new();
    let open = home(&trial).join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let kept = open.join("claude.json");
    write(&kept, "{}");
    let path = home(&trial).join(".claude.json");
    symlink(&kept, &path).unwrap();
    let refused = install(&trial, &["claude", "--yes"]).exits(2).stderr;
    assert!(refused.contains("others may write"), "{refused}");

    let own = home(&trial).join("own.json");
    write(&own, "{}");
    symlink(&own, trial.work().join(".mcp.json")).unwrap();
    let refused = install(&trial, &["claude", "--project-file", "--yes"]).exits(2);
    assert!(refused.stderr.contains("out of the project"), "{refused:?}");
    fs::create_dir(home(&trial).join("elsewhere")).unwrap();
    symlink(home(&trial).join("elsewhere"), trial.work().join(".cursor")).unwrap();
    install(&trial, &["cursor", "--project-file", "--yes"]).exits(2);
    assert!(names(&home(&trial).join("elsewhere")).is_empty());

    fs::remove_file(&path).unwrap();
    symlink(home(&trial).join("nowhere"), &path).unwrap();
    let refused = install(&trial, &["claude", "--yes"]).exits(2).stderr;
    assert!(refused.contains("leads nowhere"), "{refused}");
    for untouched in [kept, own] {
        assert_eq!(fs::read_to_string(untouched).unwrap(), "{}");
    }
}

#[test]
fn what_is_no_file_is_refused_at_once() {
    let trial = Trial::new();
    let path = home(&trial).join(".claude.json");
    fs::create_dir(&path).unwrap();
    install(&trial, &["claude", "--yes"]).exits(2);
    fs::remove_dir(&path).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&path).status();
    assert!(made.unwrap().success());
    let refused = install(&trial, &["claude", "--yes"]).exits(2).stderr;
    assert!(refused.contains("no file"), "{refused}");
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"{\"a\": \"\xff\"}").unwrap();
    let refused = install(&trial, &["claude", "--yes"]).exits(2).stderr;
    assert!(refused.contains("UTF-8"), "{refused}");
}

#[test]
fn nobody_to_ask_is_no_yes() {
    let trial = Trial::new();
    let refused = install(&trial, &["codex"]).exits(2).stderr;
    assert!(
        refused.contains("--yes") && refused.contains("--dry-run"),
        "{refused}"
    );
    assert!(!home(&trial).join(".codex").exists());
}

#[test]
fn a_person_is_asked_and_only_yes_is_yes() {
    let trial = Trial::new();
    let path = home(&trial).join(".cursor/mcp.json");
    let ask = |keys: &[&str]| {
        let mut terminal = Terminal::start(&trial, &["mcp", "install", "cursor"], &[]);
        for (times, keys) in keys.iter().enumerate() {
            terminal.asks("[y]es, [n]o: ", times + 1);
            terminal.press(keys);
        }
        terminal.end()
    };
    let (code, said) = ask(&["maybe\n", "n\n"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("+  \"mcpServers\": {") && said.contains("nothing was changed"),
        "{said}"
    );
    assert!(!path.exists());
    let (code, said) = ask(&["y\n"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("knows `glovebox` now"), "{said}");
    assert!(path.exists());
}

#[test]
fn a_server_is_named_without_its_token() {
    for (host, own, _) in HOSTS {
        let trial = Trial::new();
        let words = ["--server", "http://127.0.0.1:7070", "mcp", "install", host];
        let words = [&words[..], &["--project", "demo", "--yes"]].concat();
        let mut command = trial.command(&words);
        let told = command
            .env("GLOVEBOX_TOKEN", "gb_1_abcdef")
            .output()
            .unwrap();
        assert!(told.status.success(), "{told:?}");
        let text = fs::read_to_string(home(&trial).join(own)).unwrap();
        assert!(
            text.contains("http://127.0.0.1:7070/mcp?project=demo"),
            "{text}"
        );
        assert!(!text.contains("gb_1_"), "{text}");
        let named = ["GLOVEBOX_TOKEN", "${input:glovebox-token}"];
        assert!(named.iter().any(|it| text.contains(it)), "{text}");
    }
}

#[test]
fn what_cannot_be_told_is_refused() {
    let trial = Trial::new();
    for (words, said) in [
        (
            &["claude", "--server", "unix:/run/x.sock"][..],
            "Unix sockets",
        ),
        (&["claude", "--name", "a b"], "for a name"),
        (&["claude", "--database", "postgres://me:pw@db"], "database"),
        (&["claude", "--config", "none.toml"], "none.toml"),
    ] {
        let words = [words, &["--yes"]].concat();
        let refused = install(&trial, &words).exits(2).stderr;
        assert!(refused.contains(said), "{refused}");
    }
    assert!(!home(&trial).join(".claude.json").exists());
    let refused = trial.run(&["mcp", "--server", "http://127.0.0.1:1"]);
    let refused = refused.exits(2).stderr;
    assert!(refused.contains("http://127.0.0.1:1/mcp"), "{refused}");
}

#[test]
fn an_entry_that_was_there_is_shown_before_it_is_replaced() {
    let trial = Trial::new();
    let path = home(&trial).join(".claude.json");
    let before = "{\n  \"oauth\": \"secret\",\n  \"mcpServers\": {\n    \"glovebox\": {\n      \
                  \"type\": \"stdio\",\n      \"command\": \"/old\",\n      \"args\": [\"mcp\"],\n      \
                  \"timeout\": 9\n    }\n  }\n}\n";
    write(&path, before);
    let told = install(&trial, &["claude", "--yes"]).exits(0).stdout;
    assert!(told.contains("-      \"command\": \"/old\""), "{told}");
    assert!(!told.contains("secret"), "{told}");
    let text = fs::read_to_string(&path).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["oauth"], "secret");
    assert_eq!(value["mcpServers"]["glovebox"]["timeout"], 9);
}

/// What an agent and its host's user read, and what there is.
#[test]
fn documents_name_every_tool_and_no_other() {
    let guide = include_str!("../../../../docs/guide/mcp.md");
    let skill = include_str!("../../../../agent-skills/glovebox/SKILL.md");
    let listed = Trial::new()
        .run(&["mcp", "tools", "--json"])
        .exits(0)
        .json();
    let tools = listed["tools"].as_array().unwrap();
    let tools: Vec<&str> = tools.iter().filter_map(|it| it["name"].as_str()).collect();
    assert!(tools.len() > 20, "{tools:?}");
    for tool in &tools {
        assert!(guide.contains(&format!("`{tool}`")), "{tool}");
    }
    let families = [
        "file_",
        "exec_",
        "session_",
        "snapshot_",
        "sandbox_",
        "approval_",
    ];
    for text in [guide, skill] {
        let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
        for word in words.filter(|it| families.iter().any(|family| it.starts_with(family))) {
            let is_family = families.contains(&word) || matches!(word, "exec_id" | "session_id");
            assert!(
                is_family || tools.contains(&word),
                "there is no tool `{word}`"
            );
        }
    }
}
