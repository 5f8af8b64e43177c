/** Loaded into a measured process: lets the bench ask it to collect its garbage before its memory is read. */
process.on('SIGUSR2', () => {
  globalThis.gc?.();
});
