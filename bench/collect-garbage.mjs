// Loaded into a measured process, which then collects garbage on SIGUSR2 before its memory is read. Plain JavaScript,
// because a TypeScript file would load the compiler into that process.
process.on('SIGUSR2', () => {
  globalThis.gc?.();
});
