//! What a gateway leaves behind: nothing. Alone in its process, since it counts what that has.

// Helpers of tests are tests, which the lint cannot know.
#![allow(clippy::unwrap_used, clippy::expect_used)]
#![expect(
    clippy::disallowed_methods,
    reason = "a test speaks to what it started"
)]

#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../gateway/ground.rs"]
mod ground;
#[allow(dead_code, reason = "the other tests use the rest")]
#[path = "../gateway/servers.rs"]
mod servers;

use ground::{Ground, get, tell, until};
use tokio::runtime::Handle;

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_leave_neither_tasks_nor_descriptors() {
    let ground = Ground::allowing(&["a.test:80", "b.test:7000"]);
    ground.world.host("a.test", 80, servers::http().await);
    ground.world.host("b.test", 7000, servers::echo().await);
    tell(ground.dial("a.test", 80).await, &get("a.test", "/"))
        .await
        .unwrap();
    let metrics = Handle::current().metrics();
    // The servers' two, and the gateway's three.
    let settled = || (metrics.num_alive_tasks() == 5).then(descriptors);
    let before = until(settled)
        .await
        .expect("more tasks than there are doors and servers");
    for number in 0..250 {
        let answer = tell(ground.dial("a.test", 80).await, &get("a.test", "/"))
            .await
            .unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{number}: {answer}");
        // Whoever is slow to speak is refused without a word.
        let answer = tell(ground.dial("c.test", 80).await, &get("c.test", "/")).await;
        let answer = answer.unwrap_or_else(|| "HTTP/1.1 403".to_owned());
        assert!(answer.starts_with("HTTP/1.1 403"), "{number}: {answer}");
        let connect = format!("CONNECT a.test:80 HTTP/1.1\r\n\r\n{}", get("a.test", "/"));
        let answer = tell(ground.to_proxy().await, &connect).await.unwrap();
        assert!(answer.contains("GET /\n"), "{number}: {answer}");
        // One that its client leaves at once.
        drop(ground.dial("b.test", 7000).await);
    }
    // A door may still be taking in what its client has left.
    let gone = || (settled() == Some(before)).then_some(());
    let left = until(gone).await;
    let tasks = metrics.num_alive_tasks();
    assert!(
        left.is_some(),
        "{tasks} tasks, {} descriptors, {before} before",
        descriptors()
    );
    drop(ground);
    until(|| (metrics.num_alive_tasks() == 2).then_some(()))
        .await
        .expect("a gateway that is gone goes on");
    assert!(descriptors() < before, "its sockets are still open");
}
