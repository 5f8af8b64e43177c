// Loaded into a measured process: lets the bench ask it to collect its garbage before its memory is read. Plain
// JavaScript, because a file with types would load the compiler into that process too.
process.on('SIGUSR2', () => {
  globalThis.gc?.();
});
