//! Every tool of the catalogue, by an official client that holds each answer against its schema.

use support::McpTools;

use crate::ground::{Ground, Mode, Way};

fn every_one(way: Way, mode: Mode) {
    let Some(tools) = McpTools::find() else {
        return;
    };
    let ground = Ground::new(way, "");
    let report = ground.script(&tools, "tools", mode);
    let names = |key: &str| -> Vec<String> {
        let listed = report[key].as_array().into_iter().flatten();
        listed
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect()
    };
    let called = names("called");
    let left_out: Vec<String> = names("tools")
        .into_iter()
        .filter(|it| !it.starts_with("skill.") && !called.contains(it))
        .collect();
    assert!(left_out.is_empty(), "never called: {left_out:?}");
    ground.end();
}

#[test]
fn every_tool_answers_as_it_says_over_stdio() {
    every_one(Way::Stdio, Mode::Auto);
}

#[test]
fn every_tool_answers_as_it_says_over_http() {
    every_one(Way::Http, Mode::Legacy);
}
