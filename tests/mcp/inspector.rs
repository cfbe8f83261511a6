//! The official inspector, as a command.

use std::process::Command;

use serde_json::Value;
use support::McpTools;

use crate::ground::{Ground, Way};

const INSPECTOR: &str = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";

/// One method, with these options; what it printed.
fn inspect(tools: &McpTools, ground: &Ground, way: Way, options: &[&str]) -> Value {
    let mut command = tools.node(INSPECTOR);
    command.arg("--cli");
    let header = format!("Authorization: Bearer {}", ground.token());
    let url = match way {
        Way::Http => format!("http://{}/mcp", ground.server().address),
        Way::Stdio => String::new(),
    };
    match way {
        Way::Http => {
            command.args([url.as_str(), "--transport", "http", "--header", &header]);
        }
        Way::Stdio => {
            let server: Command = ground.stdio();
            command.arg(server.get_program()).args(server.get_args());
            command.arg("--cwd").arg(ground.trial.work());
        }
    }
    let output = command
        .args(options)
        // It keeps a catalogue at home.
        .env("HOME", ground.trial.home())
        .env("GLOVEBOX_CONFIG", ground.trial.home().join("config.toml"))
        .output()
        .expect("run the inspector");
    let (said, complained) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{options:?}\n{said}\n{complained}");
    serde_json::from_str(&said).unwrap_or_else(|_| panic!("{said}\n{complained}"))
}

fn drives(way: Way) {
    let Some(tools) = McpTools::find() else {
        return;
    };
    let ground = Ground::new(way, "");
    let listed = inspect(
        &tools,
        &ground,
        way,
        &["--method", "tools/list", "--strict"],
    );
    let names = listed["tools"].as_array().into_iter().flatten();
    assert!(names.clone().any(|it| it["name"] == "run_code"), "{listed}");
    let call = [
        "--method",
        "tools/call",
        "--tool-name",
        "run_code",
        "--tool-arg",
        "language=python",
        "code=print(6*7)",
    ];
    let called = inspect(&tools, &ground, way, &call);
    let done = &called["structuredContent"];
    assert_eq!(done["stdout"], "42\n", "{called}");
    let exec = done["exec_id"].as_str().expect("an exec");
    let listed = inspect(&tools, &ground, way, &["--method", "resources/list"]);
    assert!(listed.to_string().contains(exec), "{listed}");
    let uri = format!("glovebox://execs/{exec}/stdout");
    let read = inspect(
        &tools,
        &ground,
        way,
        &["--method", "resources/read", "--uri", &uri],
    );
    assert_eq!(read["contents"][0]["text"], "42\n", "{read}");
    ground.end();
}

#[test]
fn the_inspector_drives_stdio() {
    drives(Way::Stdio);
}

#[test]
fn the_inspector_drives_http() {
    drives(Way::Http);
}
