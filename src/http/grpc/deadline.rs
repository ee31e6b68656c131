//! How long a client waits for an RPC.

use std::time::Duration;

use hyper::HeaderMap;
use hyper::header::HeaderName;
use tonic::Status;

use super::super::guard::only;

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");
/// The most digits.
const LONGEST: usize = 8;

/// The time that a client has left, if it says so.
pub fn deadline(headers: &HeaderMap) -> Result<Option<Duration>, Status> {
    let text = only(headers, &NAME).map_err(|_| malformed())?;
    text.map(|text| time(text).ok_or_else(malformed)).transpose()
}

fn malformed() -> Status {
    Status::invalid_argument("`grpc-timeout` is at most eight digits and a unit: H, M, S, m, u or n")
}

fn time(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = digits.len() <= LONGEST && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|_| is_number)?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(all: &[&str]) -> Result<Option<Duration>, tonic::Code> {
        let mut headers = HeaderMap::new();
        for text in all {
            headers.append(NAME, text.parse().unwrap());
        }
        deadline(&headers).map_err(|status| status.code())
    }

    #[test]
    fn only_what_the_protocol_allows_is_read() {
        assert_eq!(read(&[]), Ok(None));
        for (text, time) in [
            ("99999999H", Duration::from_hours(99_999_999)),
            ("2M", Duration::from_mins(2)),
            ("0S", Duration::ZERO),
            ("00000100m", Duration::from_millis(100)),
            ("1u", Duration::from_micros(1)),
            ("7n", Duration::from_nanos(7)),
        ] {
            assert_eq!(read(&[text]), Ok(Some(time)), "{text}");
        }
        for text in ["", "S", "5", "-1S", "+5S", "5s", "1X", "1.5S", "1 S", "000000100m", "ümS"] {
            assert_eq!(read(&[text]), Err(tonic::Code::InvalidArgument), "{text}");
        }
        assert_eq!(read(&["1S", "1S"]), Err(tonic::Code::InvalidArgument));
    }
}
