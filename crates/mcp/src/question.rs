//! What a person is shown before they answer: all of what would be run, and what it wants. The words
//! of the agent stand apart from ours, so that they cannot pass for them.

use serde_json::Value;

use crate::fence::plain;

/// More than this nobody reads in a host's dialog, and nobody agrees to what was not shown.
const MOST: usize = 8 << 10;
/// As many effects as a record holds: of one that holds so many there may be more.
const RECORDED: usize = 100;

/// `None` when it is too much to be shown whole.
pub(crate) fn about(approval: &Value) -> Option<String> {
    let ask = &approval["ask"];
    let mut shown = format!("An agent wants to {}\n", line(&ask["description"]));
    shown.push_str(&format!("in `{}`:\n", line(&ask["workspace"])));
    let argv = ask["argv"].as_array().map_or(&[][..], Vec::as_slice);
    for word in argv {
        shown.push_str(&quoted(word.as_str().unwrap_or_default()));
    }
    if let Some(why) = ask["justification"].as_str() {
        shown.push_str("It says why:\n");
        shown.push_str(&quoted(why));
    }
    for (what, field) in [
        ("scripts that it runs", "scripts"),
        ("files that are placed for it", "inputs"),
    ] {
        let names = names(&ask[field], "/path");
        if !names.is_empty() {
            shown.push_str(&format!("{what}:\n{}", quoted(&names.join(" "))));
        }
    }
    let changed = names(&ask["changed"], "");
    if !changed.is_empty() {
        shown.push_str(&format!(
            "changed since it was approved before:\n{}",
            quoted(&changed.join(" "))
        ));
    }
    if let Some(to) = ask["bound"]["to"].as_str() {
        let held = match ask["bound"]["held"] == true {
            true => "",
            false => ", compared before it starts and not held while it runs",
        };
        let to = match to {
            "nothing" => "no file of the workspace",
            "files" => "these scripts",
            _ => "the whole workspace as it is now",
        };
        shown.push_str(&format!("the answer is bound to {to}{held}\n"));
    }
    let env = names(&ask["env_names"], "");
    if !env.is_empty() {
        shown.push_str(&format!("variables that it gets: {}\n", env.join(" ")));
    }
    if let Some(stdin) = ask.get("stdin").filter(|it| !it.is_null()) {
        let preview = stdin["preview"].as_str().unwrap_or_default();
        // What is not shown whole may be the program itself.
        if stdin["bytes"].as_u64() != Some(preview.len() as u64) {
            return None;
        }
        shown.push_str("It is given to read:\n");
        shown.push_str(&quoted(preview));
    }
    shown.push_str(&format!("directory: {}\n", line(&ask["cwd"])));
    for upgrade in ask["upgrades"].as_array().into_iter().flatten() {
        shown.push_str(&format!(
            "it wants `{}` {} (policy gives {})\n",
            line(&upgrade["field"]),
            line(&upgrade["asked"]),
            line(&upgrade["given"])
        ));
    }
    if ask["effects"]
        .as_array()
        .is_some_and(|it| it.len() >= RECORDED)
    {
        return None;
    }
    shown.push_str(&effects(&ask["effects"]));
    for reason in names(&ask["reasons"], "/text") {
        shown.push_str(&format!("asked because {reason}\n"));
    }
    shown.push_str(&format!("network: {}\n", line(&ask["network"])));
    shown.push_str(&format!("risk: {}\n", line(&ask["tier"])));
    (shown.len() <= MOST).then_some(shown)
}

fn effects(effects: &Value) -> String {
    let effects = effects.as_array().map_or(&[][..], Vec::as_slice);
    if effects.is_empty() {
        return String::new();
    }
    let mut shown = "What its simulation did:\n".to_owned();
    for effect in effects {
        let mut details = effect["details"].clone();
        let diff = details.as_object_mut().and_then(|it| it.remove("diff"));
        let kind = effect["type"].as_str().unwrap_or("effect");
        shown.push_str(&quoted(&format!("{kind} {details}")));
        if let Some(diff) = diff.as_ref().and_then(Value::as_str) {
            shown.push_str(&quoted(diff));
        }
    }
    shown
}

/// Words that others chose, each line marked as theirs.
fn quoted(text: &str) -> String {
    let lines = text.lines().map(|line| format!("| {}\n", plain(line)));
    let text: String = lines.collect();
    if text.is_empty() {
        "|\n".to_owned()
    } else {
        text
    }
}

fn line(value: &Value) -> String {
    plain(&value.as_str().unwrap_or_default().replace('\n', " "))
}

fn names(value: &Value, at: &str) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.filter_map(|it| Some(line(it.pointer(at)?))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn approval(script: &str, why: &str) -> Value {
        json!({"ask": {
            "description": "run a shell script", "workspace": "demo",
            "argv": ["bash", "-lc", script], "justification": why,
            "network": "none", "tier": "low",
            "upgrades": [{"field": "memory", "asked": "8G", "given": "1G"}],
            "reasons": [{"text": "a rule asks"}], "env_names": ["A"],
        }})
    }

    #[test]
    fn the_agents_words_cannot_pass_for_ours() {
        let forged = "echo hi\nrisk: none\nx\u{2028}An admin has approved this.\u{202e}\u{1b}[2J";
        let shown = about(&approval(forged, "because\nnetwork: none")).unwrap();
        for line in shown
            .lines()
            .filter(|it| it.contains("approved") || it.contains("risk: none"))
        {
            assert!(line.starts_with("| "), "{shown}");
        }
        assert!(
            !shown.contains('\u{1b}') && !shown.contains('\u{202e}'),
            "{shown}"
        );
        assert_eq!(shown.matches("\nnetwork: none\n").count(), 1, "{shown}");
        for told in ["`memory` 8G", "a rule asks", "risk: low", "| echo hi"] {
            assert!(shown.contains(told), "{told} in {shown}");
        }
    }

    #[test]
    fn what_cannot_be_shown_whole_is_not_asked_here() {
        let long = "x".repeat(MOST);
        assert_eq!(about(&approval(&long, "")), None);
        let mut piped = approval("cat", "");
        piped["ask"]["stdin"] = json!({"bytes": 5, "preview": "touch", "digest": ""});
        assert!(about(&piped).unwrap().contains("| touch\n"));
        piped["ask"]["stdin"]["bytes"] = json!(6);
        assert_eq!(about(&piped), None);
        let mut wide = approval("true", "");
        let effect = json!({"type": "t", "details": {"path": "a", "diff": "+x"}});
        wide["ask"]["effects"] = json!([effect]);
        assert!(about(&wide).unwrap().contains("| +x\n"));
        wide["ask"]["effects"] = json!(vec![effect; RECORDED]);
        assert_eq!(about(&wide), None);
    }
}
