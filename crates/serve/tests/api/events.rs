use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::client::Ask;
use crate::house::{House, shell};

/// Number, name and data of each event.
fn events(text: &str) -> Vec<(u64, String, Value)> {
    text.split("\n\n")
        .filter(|block| block.starts_with("id:"))
        .map(|block| {
            let line = |name: &str| {
                let found = block.lines().find_map(|line| line.strip_prefix(name));
                found.unwrap().trim().to_owned()
            };
            let data = serde_json::from_str(&line("data:")).unwrap();
            (line("id:").parse().unwrap(), line("event:"), data)
        })
        .collect()
}

pub(crate) fn a_stream_can_be_taken_up_again() {
    let house = House::open();
    let mut request =
        shell("for i in 1 2 3; do echo line $i; sleep 0.3; done; printf '\\xc3'; exit 4");
    request["wait"] = json!(false);
    let id = house.post("/v1/execs", &request).json()["exec_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/v1/execs/{id}/events");
    // Followed as it happens, to the end.
    let live = house.get(&path);
    assert_eq!(live.header("content-type"), Some("text/event-stream"));
    let all = events(&live.text());
    let numbers: Vec<u64> = all.iter().map(|(number, _, _)| *number).collect();
    assert_eq!(
        numbers,
        (1..=all.len() as u64).collect::<Vec<_>>(),
        "from 1, without gaps"
    );
    let finals = all
        .iter()
        .filter(|(_, _, data)| data.get("exit_code").is_some())
        .count();
    assert_eq!(finals, 1, "the end is told once");
    let (_, name, last) = all.last().unwrap();
    assert_eq!(
        (name.as_str(), &last["status"], &last["exit_code"]),
        ("state", &json!("failed"), &json!(4))
    );
    assert!(last["receipt"]["hash"].is_string());
    // How much is one piece depends on how soon it is read.
    let mut told = Vec::new();
    for (_, _, data) in &all {
        told.extend(data["text"].as_str().unwrap_or_default().bytes());
        let bytes = STANDARD.decode(data["base64"].as_str().unwrap_or_default());
        told.extend(bytes.unwrap());
    }
    assert_eq!(told, b"line 1\nline 2\nline 3\n\xc3", "lossless: {all:?}");
    assert!(all.iter().any(|(_, _, data)| data["base64"].is_string()));
    // Again from every place, in either way.
    for after in 0..=all.len() {
        let rest: Vec<_> = all[after..].to_vec();
        assert_eq!(
            events(&house.get(&format!("{path}?after={after}")).text()),
            rest
        );
        let again = Ask::new("GET", &path).token(&house.admin);
        let again = again
            .header("Last-Event-ID", &after.to_string())
            .send(house.address);
        assert_eq!(events(&again.text()), rest);
    }
    assert_eq!(house.get(&format!("{path}?after=-1")).status, 400);
    let bad = Ask::new("GET", &path)
        .token(&house.admin)
        .header("Last-Event-ID", "x");
    assert_eq!(bad.send(house.address).status, 400);
}

pub(crate) fn much_output_is_told_without_loss() {
    let house = House::open();
    // Six bytes of JSON for each, so far more than a page.
    let request = shell("head -c 524288 /dev/zero; echo end");
    let exec = house.post("/v1/execs", &request).json();
    let id = exec["exec_id"].as_str().unwrap();
    let all = events(&house.get(&format!("/v1/execs/{id}/events")).text());
    let numbers: Vec<u64> = all.iter().map(|(number, _, _)| *number).collect();
    assert_eq!(numbers, (1..=all.len() as u64).collect::<Vec<_>>());
    let told: String = all
        .iter()
        .filter_map(|(_, _, data)| data["text"].as_str())
        .collect();
    assert_eq!(told.len(), 524_288 + 4);
    assert!(told.ends_with("\0end\n"));
    assert_eq!(all.last().unwrap().2["exit_code"], 0);
}
