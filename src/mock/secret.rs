//! Random secrets.

/// 128 random bits, as 32 hexadecimal digits.
///
/// # Errors
/// If the system provides no random bytes.
pub fn draw() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}
