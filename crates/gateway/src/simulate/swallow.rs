//! Bodies that go nowhere: counted, digested and thrown away.

use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Counts while it reads, for whoever is still there when the reading is broken off. The digest is
/// missing if it did not come whole. Its length is bounded by the limit on bytes, which fails the
/// read, and its time by the limit on connections that stand still.
pub(super) async fn swallow(mut body: Incoming, bytes: &mut u64) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.ok()?.data_ref() {
            hasher.update(data);
            *bytes += data.len() as u64;
        }
    }
    Some(hasher.finalize().to_hex().to_string())
}
