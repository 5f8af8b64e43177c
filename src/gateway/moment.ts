/** Now, in milliseconds since 1970: never goes back while this process runs, and means the same in the next one. */
export function moment(): number {
  return performance.timeOrigin + performance.now();
}
