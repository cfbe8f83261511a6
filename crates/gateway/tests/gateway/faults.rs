//! How a simulated world fails.

use std::time::{Duration, Instant};

use glovebox_gateway::Injected;
use glovebox_model::Spoken;
use hickory_proto::rr::RecordType;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ground::{get, patiently, policy, tell};
use crate::simulation::Stage;

fn stage(fault: Value) -> Stage {
    let simulation = json!({"responses": [{"host": "*"}], "faults": [fault], "seed": 11});
    Stage::new(
        policy(&["a.test:80", "a.test:443", "b.test:80"]),
        simulation,
    )
}

async fn statuses(stage: &Stage, host: &str, count: usize) -> Vec<String> {
    let mut all = Vec::new();
    for _ in 0..count {
        let answer = stage.plain(host, &get(host, "/")).await.unwrap();
        assert!(answer.contains("x-glovebox-simulated: 1"), "{answer}");
        all.push(answer[9..12].to_owned());
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_takes_as_long_as_it_is_said_to() {
    let stage = stage(json!({"host": "a.test", "latency_ms": 300, "jitter_ms": 50}));
    let begun = Instant::now();
    assert_eq!(statuses(&stage, "a.test", 1).await, ["200"]);
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let seen = stage.ground.seen(|it| it.method.is_some()).await;
    let told = seen.answer.unwrap();
    assert!((300..=350).contains(&told.delay_ms), "{told:?}");
    assert_eq!(told.fault, None);
    assert_eq!(statuses(&stage, "b.test", 1).await, ["200"]);
    let other = stage
        .ground
        .seen(|it| it.host == "b.test" && it.method.is_some());
    assert_eq!(other.await.answer.unwrap().delay_ms, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_come_in_their_pattern_and_with_one_seed_in_one_order() {
    let alternating = stage(json!({"host": "a.test", "pattern": "alternating"}));
    let all = statuses(&alternating, "a.test", 4).await;
    assert_eq!(all, ["200", "500", "200", "500"]);
    let all = alternating.ground.all_seen();
    let faults: Vec<_> = all.iter().filter_map(|it| it.answer?.fault).collect();
    assert_eq!(faults, [Injected::Error, Injected::Error]);
    let failed = all
        .iter()
        .filter_map(|it| it.answer)
        .find(|it| it.fault.is_some());
    assert_eq!(
        failed.map(|it| (it.status, it.preset)),
        Some((Some(500), None))
    );

    let random = json!({"host": "*", "success_percent": 50});
    let (one, other) = (stage(random.clone()), stage(random));
    let all = statuses(&one, "a.test", 30).await;
    assert_eq!(all, statuses(&other, "a.test", 30).await);
    assert!(all.contains(&"200".to_owned()) && all.contains(&"500".to_owned()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_limit_answers_with_the_time_to_come_back() {
    let limit = json!({"requests": 2, "per_ms": 90_000});
    let stage = stage(json!({"host": "a.test", "rate_limit": limit}));
    assert_eq!(statuses(&stage, "a.test", 2).await, ["200", "200"]);
    let answer = stage.plain("a.test", &get("a.test", "/")).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 429"), "{answer}");
    let after = answer
        .lines()
        .find_map(|it| it.strip_prefix("retry-after: "));
    let seconds: u64 = after.unwrap().parse().unwrap();
    assert!((60..=90).contains(&seconds), "{seconds}");
    let fault = |it: &glovebox_gateway::Seen| it.answer.and_then(|it| it.fault);
    stage
        .ground
        .seen(|it| fault(it) == Some(Injected::RateLimit))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_resets_the_connection_whatever_is_spoken() {
    let stage = stage(json!({"host": "a.test", "success_percent": 0, "failure": "crash"}));
    assert_eq!(stage.plain("a.test", &get("a.test", "/")).await, None);
    let stream = stage.ground.dial("a.test", 443).await;
    let answer = stage.ask(stream, "a.test", &get("a.test", "/")).await;
    assert_eq!(answer, None);
    assert_eq!(
        tell(stage.ground.dial("a.test", 80).await, "\x00raw").await,
        None
    );
    for spoken in [Spoken::Http, Spoken::Https, Spoken::Tcp] {
        let seen = stage.ground.seen(|it| it.spoken == spoken).await;
        let told = seen.answer.unwrap();
        assert_eq!((told.fault, told.status), (Some(Injected::Crash), None));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_timeout_has_no_answer_until_the_client_gives_up_or_it_is_over() {
    let stage = stage(json!({"host": "a.test", "success_percent": 0, "failure": "timeout"}));
    let address = async |name: &str| {
        let found = stage.ground.lookup(name, RecordType::A).await.1;
        found.unwrap().to_string()
    };
    let (a, b) = (address("a.test").await, address("b.test").await);
    // Where those that gave up were not noticed yet there is no room: it is tried again.
    let request = get("a.test", "/");
    let ask = async || {
        loop {
            if let Ok(mut stream) = stage.ground.try_dial(&a, 80).await
                && stream.write_all(request.as_bytes()).await.is_ok()
            {
                break stream;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let mut kept = ask().await;
    let first = stage.ground.seen(|it| it.method.is_some()).await;
    assert_eq!(first.answer.unwrap().fault, Some(Injected::Timeout));
    let waited = tokio::time::timeout(Duration::from_millis(500), kept.read_u8()).await;
    assert!(waited.is_err(), "{waited:?}");
    // More of them than may stand at once: those that gave up have made room.
    for _ in 0..40 {
        let mut some = Vec::new();
        for _ in 0..15 {
            some.push(patiently(ask()).await);
        }
        drop(some);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let room = async || {
        loop {
            if let Ok(stream) = stage.ground.try_dial(&b, 80).await
                && let Some(answer) = tell(stream, &get("b.test", "/")).await
            {
                break answer;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    assert!(patiently(room()).await.starts_with("HTTP/1.1 200"));
    stage.ground.gateway.close();
    assert!(patiently(kept.read_u8()).await.is_err());
}
