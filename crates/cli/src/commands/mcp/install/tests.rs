//! Each host, and each state that its file can be in.

use super::edit::{Edit, Unfit, put, snippet};
use super::entry::{Entry, Form};
use super::host::Host;
use super::shown::unified;

const ALL: [Host; 4] = [Host::Claude, Host::Cursor, Host::Codex, Host::Vscode];
const JSON: [Host; 3] = [Host::Claude, Host::Cursor, Host::Vscode];

fn local() -> Entry {
    Entry {
        name: "glovebox".to_owned(),
        form: Form::Program {
            command: "/usr/bin/glovebox".to_owned(),
            args: vec!["mcp".to_owned()],
        },
    }
}

fn remote() -> Entry {
    Entry {
        name: "glovebox".to_owned(),
        form: Form::Server {
            url: "https://box.example:443/mcp".to_owned(),
        },
    }
}

#[track_caller]
fn changed(host: Host, text: &str, entry: &Entry) -> (String, Option<String>) {
    match put(host, text, entry) {
        Ok(Edit::Changed { text, before }) => (text, before),
        other => panic!("{host:?}: {other:?}"),
    }
}

/// Every line of `before` stands in `after`, in the same order.
#[track_caller]
fn keeps_lines(before: &str, after: &str) {
    let mut rest = after.lines();
    for line in before.lines() {
        // A comma may have come at the end of the last entry before ours.
        let comma = format!("{line},");
        assert!(
            rest.any(|it| it == line || it == comma),
            "{line:?} is gone or moved:\n{after}"
        );
    }
}

#[test]
fn a_file_that_is_absent_empty_or_blank_holds_the_entry_then() {
    for host in ALL {
        for entry in [local(), remote()] {
            let whole = snippet(host, &entry).unwrap();
            assert!(
                whole.ends_with('\n') && !whole.starts_with('\n'),
                "{whole:?}"
            );
            let (empty, before) = changed(host, "", &entry);
            assert_eq!((empty.as_str(), before), (whole.as_str(), None));
            let (blank, _) = changed(host, "\n", &entry);
            assert_eq!(blank.trim(), whole.trim(), "{host:?}");
            // And again: nothing.
            assert_eq!(put(host, &whole, &entry), Ok(Edit::Same), "{host:?}");
        }
    }
    let (braces, _) = changed(Host::Claude, "{}", &local());
    assert_eq!(braces, snippet(Host::Claude, &local()).unwrap().trim_end());
}

#[test]
fn the_forms_are_those_of_each_host() {
    let value = |host, entry: &Entry| -> serde_json::Value {
        serde_json::from_str(&snippet(host, entry).unwrap()).unwrap()
    };
    let program = serde_json::json!({
        "type": "stdio", "command": "/usr/bin/glovebox", "args": ["mcp"]
    });
    assert_eq!(
        value(Host::Claude, &local())["mcpServers"]["glovebox"],
        program
    );
    let cursor = value(Host::Cursor, &remote());
    assert_eq!(
        cursor["mcpServers"]["glovebox"]["headers"]["Authorization"],
        "Bearer ${env:GLOVEBOX_TOKEN}"
    );
    let code = value(Host::Vscode, &remote());
    assert_eq!(code["inputs"][0]["password"], true);
    assert_eq!(code["servers"]["glovebox"]["type"], "http");
    assert_eq!(
        snippet(Host::Codex, &remote()).unwrap(),
        "[mcp_servers.glovebox]\nurl = \"https://box.example:443/mcp\"\n\
         bearer_token_env_var = \"GLOVEBOX_TOKEN\"\n"
    );
}

fn furnished(host: Host) -> String {
    if host == Host::Codex {
        return "# my model\nmodel = \"best\"   # the dear one\n\n\
                [mcp_servers.docs]\ncommand = 'npx'\nargs = [\n  \"docs\", # all of them\n]\n\n\
                [mcp_servers.docs.env]\nKEY = \"secret\"\n\n[profiles.x]\nmodel = \"b\"\n"
            .to_owned();
    }
    let key = host.key();
    format!(
        "// mine\n{{\n\t\"theme\" : \"dark\", /* not light */\n\t\"{key}\": {{\n\
         \t\t// documents\n\t\t\"docs\": {{ \"command\":\"npx\", \"args\": [ \"docs\" ] }},\n\
         \t\t\"more\": {{\n\t\t\t\"command\": \"x\", // why not\n\t\t\t\"env\": {{\"KEY\": \"secret\"}}\n\
         \t\t}}\n\t}},\n\n\t\"numbers\": [1,  2.50, 1e9],\n\t\"z\": 1, \"a\": 2\n}}\n// the end\n"
    )
}

#[test]
fn servers_comments_order_and_spaces_stay() {
    for host in ALL {
        for entry in [local(), remote()] {
            let before = furnished(host);
            let (after, old) = changed(host, &before, &entry);
            assert_eq!(old, None);
            keeps_lines(&before, &after);
            assert_eq!(put(host, &after, &entry), Ok(Edit::Same), "{after}");
            assert!(!unified(&before, &after).contains("secret"), "{host:?}");
        }
    }
}

#[test]
fn line_ends_and_the_mark_of_byte_order_stay() {
    for host in ALL {
        let before = furnished(host).replace('\n', "\r\n");
        let (after, _) = changed(host, &before, &local());
        let ours = after.matches('\n').count() - after.matches("\r\n").count();
        assert_eq!(ours, 0, "{host:?}: {after:?}");
    }
    let (after, _) = changed(Host::Vscode, "\u{feff}{}\n", &local());
    assert!(after.starts_with("\u{feff}{"), "{after:?}");
}

#[test]
fn an_entry_that_says_something_else_is_changed_and_the_rest_of_it_stays() {
    for host in JSON {
        let key = host.key();
        let before = format!(
            "{{\n  \"{key}\": {{\n    \"glovebox\": {{\n      // by hand\n      \
             \"command\": \"/old/glovebox\",\n      \"args\": [\"mcp\"],\n      \
             \"env\": {{ \"A\": \"b\" }}\n    }}\n  }}\n}}\n"
        );
        let (after, old) = changed(host, &before, &local());
        assert!(old.unwrap().contains("/old/glovebox"), "{host:?}");
        assert!(after.contains("// by hand") && after.contains("\"env\": { \"A\": \"b\" }"));
        assert!(after.contains("\"/usr/bin/glovebox\"") && !after.contains("/old/"));
        // The other form has nothing to do with those.
        let (after, _) = changed(host, &before, &remote());
        assert!(
            !after.contains("env\": {") && !after.contains("command"),
            "{after}"
        );
        let (back, _) = changed(host, &after, &local());
        assert!(!back.contains("url"), "{back}");
    }
    let before = "[mcp_servers.glovebox]\n# by hand\ncommand = \"/old/glovebox\" # here\nargs = [\"mcp\"]\n\
                  startup_timeout_sec = 20\n\n[mcp_servers.glovebox.env]\nA = \"b\"\n\n[x]\ny = 1\n";
    let (after, old) = changed(Host::Codex, before, &local());
    assert!(old.unwrap().contains("/old/glovebox"));
    assert_eq!(after, before.replace("/old/", "/usr/bin/"));
    let (after, _) = changed(Host::Codex, before, &remote());
    assert!(
        !after.contains("timeout") && after.contains("[x]\ny = 1\n"),
        "{after}"
    );
}

#[test]
fn tables_of_every_shape_take_the_entry() {
    for before in [
        "mcp_servers = { docs = { command = \"npx\" } }\n",
        "mcp_servers.docs.command = \"npx\"\n",
        "[mcp_servers]\n\n[mcp_servers.docs]\ncommand = \"npx\"\n",
        "[mcp_servers]\ndocs = { command = \"npx\" }\n",
        "model = \"x\"",
    ] {
        let (after, _) = changed(Host::Codex, before, &local());
        assert_eq!(
            put(Host::Codex, &after, &local()),
            Ok(Edit::Same),
            "{after}"
        );
        let first = before.lines().next().unwrap();
        assert!(after.contains(first.trim_end_matches(" }")), "{after}");
    }
}

#[test]
fn hostile_words_stay_within_their_quotes() {
    let mut entry = local();
    let command = "/a b\\c\"d\n'''\"\"\"\u{1}\t${x}/é";
    entry.form = Form::Program {
        command: command.to_owned(),
        args: vec![command.to_owned(), String::new()],
    };
    for host in ALL {
        let text = snippet(host, &entry).unwrap();
        assert_eq!(put(host, &text, &entry), Ok(Edit::Same), "{text}");
    }
}

#[test]
fn what_cannot_be_read_is_left_alone() {
    for (text, why) in [
        ("{", "no JSON"),
        ("{\"a\": 1 \"b\": 2}", "no JSON"),
        ("{a: 1}", "no JSON"),
        ("{'a': 1}", "no JSON"),
        ("{} {}", "no JSON"),
        ("[]", "no JSON object"),
        ("7", "no JSON object"),
        ("{\"KEY\": []}", "no object"),
        ("{\"KEY\": null}", "no object"),
        ("{\"KEY\": {}, \"KEY\": {}}", "twice"),
        (
            "{\"KEY\": {\"glovebox\": 1, \"glove\\u0062ox\": 2}}",
            "twice",
        ),
    ] {
        for host in JSON {
            let text = text.replace("KEY", host.key());
            match put(host, &text, &local()) {
                Err(Unfit(said)) => assert!(said.contains(why), "{text}: {said}"),
                other => panic!("{text}: {other:?}"),
            }
        }
    }
    let deep = "[".repeat(100_000);
    assert!(put(Host::Claude, &deep, &local()).is_err());
    for text in [
        "=",
        "a = 1\na = 2\n",
        "mcp_servers = 1\n",
        "a = 1\r\nb = 2\n",
        "[[mcp_servers]]\n",
    ] {
        assert!(put(Host::Codex, text, &local()).is_err(), "{text}");
    }
}

#[test]
fn a_question_that_the_host_knows_is_not_put_in_again() {
    let before = "{\n  \"inputs\": [\n    {\"type\": \"promptString\", \"id\": \"other\"}\n  ],\n  \"servers\": {}\n}\n";
    let (after, _) = changed(Host::Vscode, before, &remote());
    assert_eq!(after.matches("glovebox-token").count(), 2, "{after}");
    assert_eq!(put(Host::Vscode, &after, &remote()), Ok(Edit::Same));
    let mut second = remote();
    second.name = "second".to_owned();
    let (both, _) = changed(Host::Vscode, &after, &second);
    assert_eq!(
        both.matches("\"id\": \"glovebox-token\"").count(),
        1,
        "{both}"
    );
    assert!(put(Host::Vscode, "{\"inputs\": 1}", &remote()).is_err());
}

#[test]
fn a_file_on_one_line_is_not_printed() {
    let before = format!("{{\"secret\":\"{}\",\"mcpServers\":{{}}}}", "s".repeat(500));
    let (after, _) = changed(Host::Claude, &before, &local());
    assert!(unified(&before, &after).len() < 1000);
}

#[test]
fn hunks_begin_where_unified_diffs_say() {
    let first = |before: &str, after: &str| {
        let unified = unified(before, after);
        unified.lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(first("a\nb\nc\n", "a\nb\nc\nd\ne\n"), "@@ -3,0 +4,2 @@");
    assert_eq!(first("", "a\nb\n"), "@@ -0,0 +1,2 @@");
    assert_eq!(first("a\nb\nc\n", "a\nc\n"), "@@ -2,1 +1,0 @@");
    assert_eq!(first("a\nb\n", "a\nc\n"), "@@ -2,1 +2,1 @@");
}
