//! Header values: any text survives the wire, and any bytes from it are an answer or an error.

#![no_main]

use libfuzzer_sys::fuzz_target;
use switchboard_protocol::headers::{decode_value, encode_value};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(decoded) = decode_value(bytes) {
        let encoded = encode_value(&decoded);
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(&*decoded));
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let encoded = encode_value(text);
        assert!(encoded.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        assert!(!encoded.starts_with(' ') && !encoded.ends_with(' '));
        assert_eq!(decode_value(encoded.as_bytes()).as_deref(), Ok(text));
    }
});
