//! The message of a request, read as it comes: what its head claims takes no memory before it is there.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::HeaderMap;
use hyper::body::{Body, Bytes};
use tokio::time::timeout;
use tonic::Status;

/// The most bytes of all messages together that are arriving on a connection.
const MOST_TOGETHER: usize = 512 << 20;
/// How long nothing of a message may arrive.
const SILENT: Duration = Duration::from_mins(1);
/// Before a message: whether it is compressed, and its length.
pub const HEAD: usize = 5;

/// The messages that are arriving on one connection.
#[derive(Default)]
pub struct Arriving(AtomicUsize);

/// The bytes of one of them.
struct Held<'a> {
    arriving: &'a Arriving,
    bytes: usize,
}

impl Held<'_> {
    fn add(&mut self, bytes: usize) -> Result<(), Status> {
        self.bytes += bytes;
        if self.arriving.0.fetch_add(bytes, Ordering::Relaxed) + bytes > MOST_TOGETHER {
            let text = format!("more than {MOST_TOGETHER} bytes of requests are arriving on this connection");
            return Err(Status::resource_exhausted(text));
        }
        Ok(())
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.arriving.0.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Arriving {
    /// The only message of a request, behind its head. It has no more bytes than this.
    pub async fn message<B>(&self, headers: &HeaderMap, mut body: B, most: usize) -> Result<Vec<u8>, Status>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: std::fmt::Display,
    {
        let mut held = Held { arriving: self, bytes: 0 };
        let mut bytes = Vec::new();
        loop {
            let frame = timeout(SILENT, body.frame()).await;
            match frame.map_err(|_| Status::deadline_exceeded("nothing of the message has arrived for a minute"))? {
                None => break,
                Some(Err(error)) => return Err(Status::cancelled(format!("the request broke off: {error}"))),
                Some(Ok(frame)) => {
                    let Ok(data) = frame.into_data() else { continue };
                    held.add(data.len())?;
                    bytes.extend_from_slice(&data);
                    if is_more(headers, &bytes, most)? {
                        return Err(Status::invalid_argument("the request has more than one message"));
                    }
                }
            }
        }
        match length(&bytes) {
            Some(length) if bytes.len() == HEAD + length => Ok(bytes),
            None if bytes.is_empty() => Err(Status::invalid_argument("the request has no message")),
            _ => Err(Status::invalid_argument("the request ends within its message")),
        }
    }
}

fn length(bytes: &[u8]) -> Option<usize> {
    let (_, rest) = bytes.split_first()?;
    Some(u32::from_be_bytes(*rest.first_chunk()?) as usize)
}

/// Whether something is there behind a message, if that may go on.
fn is_more(headers: &HeaderMap, bytes: &[u8], most: usize) -> Result<bool, Status> {
    let Some(length) = length(bytes) else { return Ok(false) };
    match bytes.first() {
        Some(0) => {}
        Some(1) if headers.contains_key("grpc-encoding") => {
            let mut refused = Status::unimplemented("messages must not be compressed");
            refused
                .metadata_mut()
                .insert("grpc-accept-encoding", tonic::metadata::MetadataValue::from_static("identity"));
            return Err(refused);
        }
        _ => return Err(Status::internal("the message is marked as compressed, and the request names no encoding")),
    }
    if length > most {
        return Err(Status::out_of_range(format!("the message has {length} bytes, of {most} at most")));
    }
    Ok(bytes.len() > HEAD + length)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;
    use http_body_util::StreamBody;
    use hyper::body::Frame;
    use tonic::Code;

    use super::*;

    type Parts = Vec<Result<Frame<Bytes>, Infallible>>;

    async fn read(parts: &[&'static [u8]], compressed: bool) -> Result<Vec<u8>, Code> {
        let parts: Parts = parts.iter().map(|part| Ok(Frame::data(Bytes::from_static(part)))).collect();
        let named = compressed.then(|| ("grpc-encoding".parse().unwrap(), "gzip".parse().unwrap()));
        let (headers, arriving) = (HeaderMap::from_iter(named), Arriving::default());
        let read = arriving.message(&headers, StreamBody::new(stream::iter(parts)), 1000).await;
        assert_eq!(arriving.0.into_inner(), 0);
        read.map_err(|status| status.code())
    }

    #[tokio::test]
    async fn a_request_has_one_message() {
        assert_eq!(read(&[b"\0", b"\0\0\0\x02a", b"b"], false).await, Ok(b"\0\0\0\0\x02ab".to_vec()));
        assert_eq!(read(&[b"\0\0\0\0\0"], true).await, Ok(b"\0\0\0\0\0".to_vec()));
        let refused: [(&[&'static [u8]], Code); 7] = [
            (&[], Code::InvalidArgument),
            (&[b"\0\0\0"], Code::InvalidArgument),
            (&[b"\0\0\0\0\x02a"], Code::InvalidArgument),
            (&[b"\0\0\0\0\x01a", b"\0\0\0\0\0"], Code::InvalidArgument),
            (&[b"\0\0\0\x03\xe9"], Code::OutOfRange),
            (&[b"\x01\0\0\0\x01a"], Code::Internal),
            (&[b"\x02\0\0\0\x01a"], Code::Internal),
        ];
        for (parts, code) in refused {
            assert_eq!(read(parts, false).await, Err(code), "{parts:?}");
        }
        assert_eq!(read(&[b"\x01\0\0\0\x01a"], true).await, Err(Code::Unimplemented));
    }

    #[tokio::test(start_paused = true)]
    async fn a_message_that_does_not_come_is_given_up() {
        let arriving = Arriving::default();
        let silent = StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let refused = arriving.message(&HeaderMap::new(), silent, 1000).await.unwrap_err();
        assert_eq!(refused.code(), Code::DeadlineExceeded);
    }

    #[tokio::test]
    async fn what_arrives_at_once_is_bounded() {
        let arriving = Arriving(AtomicUsize::new(MOST_TOGETHER));
        let body = http_body_util::Full::new(Bytes::from_static(b"\0\0\0\0\0"));
        let refused = arriving.message(&HeaderMap::new(), body, 1000).await.unwrap_err();
        assert_eq!((refused.code(), arriving.0.into_inner()), (Code::ResourceExhausted, MOST_TOGETHER));
    }
}
