//! What the server counts can be read by whoever scrapes it, and is right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde_json::json;
use support::{Caller, Client, Gate, Trial, sh};

use crate::pool_fire::{PATIENT, serve};

const PATIENCE: Duration = Duration::from_secs(60);

/// Samples by their name and labels.
type Samples = BTreeMap<String, f64>;

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|it| it.is_ascii_alphabetic() || it == '_')
        && letters.all(|it| it.is_ascii_alphanumeric() || matches!(it, '_' | ':'))
}

/// `name="value",…` in its parts.
fn labels(text: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (name, after) = rest
            .split_once("=\"")
            .unwrap_or_else(|| panic!("labels: {text}"));
        assert!(is_name(name), "label `{name}` in {text}");
        let (value, after) = after
            .split_once('"')
            .unwrap_or_else(|| panic!("labels: {text}"));
        found.push((name.to_owned(), value.to_owned()));
        rest = after.strip_prefix(',').unwrap_or(after);
    }
    found
}

/// Reads it as strictly as a scraper does.
fn parse(text: &str) -> Samples {
    assert!(
        text.ends_with("# EOF\n"),
        "it does not end: {}",
        &text[text.len().saturating_sub(80)..]
    );
    let mut types: BTreeMap<&str, &str> = BTreeMap::new();
    let mut helped = BTreeSet::new();
    let mut samples = Samples::new();
    for line in text.lines().filter(|line| *line != "# EOF") {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(types.insert(name, kind).is_none(), "two types of {name}");
            assert!(is_name(name) && name.starts_with("glovebox_"), "{name}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# HELP ") {
            helped.insert(rest.split(' ').next().unwrap());
            continue;
        }
        if line.starts_with('#') {
            assert!(line.starts_with("# UNIT "), "{line}");
            continue;
        }
        let (key, value) = line.rsplit_once(' ').unwrap();
        let name = key.split('{').next().unwrap();
        let family = types.iter().find(|(family, kind)| {
            let end = name.strip_prefix(**family);
            match **kind {
                "counter" => end == Some("_total"),
                "histogram" => matches!(end, Some("_sum" | "_count" | "_bucket")),
                "gauge" => end == Some(""),
                other => panic!("type {other}"),
            }
        });
        let (family, kind) = family.unwrap_or_else(|| panic!("no type for {line}"));
        assert!(helped.contains(family), "no help for {family}");
        let value: f64 = value.parse().unwrap();
        assert!(*kind == "gauge" || value >= 0.0, "{line}");
        assert!(
            samples.insert(key.to_owned(), value).is_none(),
            "twice: {key}"
        );
    }
    check_histograms(&samples);
    samples
}

/// Buckets grow, and the last is everything.
fn check_histograms(samples: &Samples) {
    let mut series: BTreeMap<(String, String), Vec<(f64, f64)>> = BTreeMap::new();
    for (key, value) in samples {
        let Some((name, rest)) = key.split_once("_bucket{") else {
            continue;
        };
        let mut labels = labels(rest.strip_suffix('}').unwrap());
        let place = labels.iter().position(|(name, _)| name == "le").unwrap();
        let bound = labels.remove(place).1;
        let bound = match bound.as_str() {
            "+Inf" => f64::INFINITY,
            bound => bound.parse().unwrap(),
        };
        let labels: Vec<_> = labels
            .iter()
            .map(|(name, value)| format!("{name}=\"{value}\""))
            .collect();
        let one = series
            .entry((name.to_owned(), labels.join(",")))
            .or_default();
        one.push((bound, *value));
    }
    assert!(series.len() > 3, "{series:?}");
    for ((name, labels), mut buckets) in series {
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert!(
            buckets.windows(2).all(|two| two[0].1 <= two[1].1),
            "{name} {labels}: {buckets:?}"
        );
        let labels = if labels.is_empty() {
            labels
        } else {
            format!("{{{labels}}}")
        };
        let (bound, all) = *buckets.last().unwrap();
        assert!(bound.is_infinite());
        assert_eq!(
            samples[&format!("{name}_count{labels}")],
            all,
            "{name}{labels}"
        );
        assert!(samples.contains_key(&format!("{name}_sum{labels}")));
    }
}

fn scrape(client: &Client) -> Samples {
    let answer = client.get("/metrics");
    assert_eq!(answer.status, 200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text"), "{kind}");
    parse(&answer.text())
}

#[test]
fn counters_move_as_the_server_works() {
    let trial = Trial::in_memory(Caller::Root).unwrap();
    let gate = Gate::new(&trial, "gate");
    let server = serve(&trial, PATIENT).on(&trial);
    let client = server.client();
    client.set(&json!({"max_concurrent_execs": 2}));
    for script in ["true", "true", "exit 1"] {
        assert_eq!(client.post("/v1/execs", &sh(script)).status, 200);
    }
    let held: Vec<_> = (0..3).map(|_| client.begin(&sh(&gate.wait()))).collect();
    assert_eq!(
        server.client_of("gb_nonsense").get("/v1/whoami").status,
        401
    );
    assert_eq!(
        client
            .get("/v1/execs/e_00000000000000000000000000000000")
            .status,
        404
    );
    // The place of the one before is given back a moment after its end is told.
    let mut before = Samples::new();
    support::wait_until(PATIENCE, || {
        before = scrape(&client);
        before["glovebox_execs_running"] == 2.0 && before["glovebox_execs_queued"] == 1.0
    });
    let posts = |status: u16| {
        format!(
            "glovebox_http_requests_total{{route=\"/v1/execs\",method=\"POST\",status=\"{status}\"}}"
        )
    };
    for (key, value) in [
        (
            "glovebox_execs_total{status=\"succeeded\",backend=\"native\"}",
            2.0,
        ),
        (
            "glovebox_execs_total{status=\"failed\",backend=\"native\"}",
            1.0,
        ),
        ("glovebox_exec_duration_seconds_count", 3.0),
        ("glovebox_execs_running", 2.0),
        ("glovebox_execs_queued", 1.0),
        ("glovebox_execs_limit", 2.0),
        ("glovebox_auth_failures_total", 1.0),
        (posts(200).as_str(), 3.0),
        (posts(202).as_str(), 3.0),
        (
            "glovebox_http_requests_total{route=\"/v1/execs/{id}\",method=\"GET\",status=\"404\"}",
            1.0,
        ),
    ] {
        assert_eq!(before.get(key), Some(&value), "{key}: {before:#?}");
    }
    gate.open();
    for id in &held {
        client.ended(id);
    }
    let settled = support::wait_until(PATIENCE, || {
        let after = scrape(&client);
        after["glovebox_execs_running"] == 0.0 && after["glovebox_execs_queued"] == 0.0
    });
    assert!(settled);
    let after = scrape(&client);
    assert_eq!(
        after["glovebox_execs_total{status=\"succeeded\",backend=\"native\"}"],
        5.0
    );
    assert_eq!(after["glovebox_exec_queue_wait_seconds_count"], 6.0);
    assert!(
        after["glovebox_exec_duration_seconds_sum"] > before["glovebox_exec_duration_seconds_sum"]
    );
    for (key, value) in &before {
        let grows = key.contains("_total") || key.contains("_bucket") || key.contains("_count");
        assert!(!grows || after[key] >= *value, "{key} went back");
        // Nothing that a caller chose is in a label.
        assert!(
            !key.contains("e_0000") && !key.contains(trial.tag()),
            "{key}"
        );
    }
    let agent = server.client_of(&server.token_of("agent", "local", "a"));
    assert_eq!(agent.get("/metrics").status, 403);
    assert_eq!(server.nobody().get("/metrics").status, 401);
    assert_eq!(server.stop(), 0);
    trial.end();
}
