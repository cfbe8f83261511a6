//! Bodies that go nowhere: counted, digested and thrown away.

use http_body_util::BodyExt;
use hyper::body::Incoming;

/// Counts while it reads, so that it can be told when the reading is broken off. None
/// if it did not come whole; without a digest if more headers follow it, which are not told. Its length is bounded by the limit on bytes, which fails the
/// read, and its time by the limit on connections that stand still.
pub(super) async fn swallow(mut body: Incoming, bytes: &mut u64) -> Option<Option<String>> {
    let mut hasher = blake3::Hasher::new();
    let mut trailed = false;
    while let Some(frame) = body.frame().await {
        match frame.ok()?.into_data() {
            Ok(data) => {
                hasher.update(&data);
                *bytes += data.len() as u64;
            }
            Err(_) => trailed = true,
        }
    }
    let digest = hasher.finalize().to_hex().to_string();
    Some((!trailed).then_some(digest))
}
