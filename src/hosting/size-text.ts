const MEGABYTE = 1024 ** 2;

/** For people: 512 MB, 1.5 GB. */
export function sizeText(bytes: number): string {
  const megabytes = bytes / MEGABYTE;
  return megabytes < 1024 ? `${rounded(megabytes)} MB` : `${rounded(megabytes / 1024)} GB`;
}

function rounded(amount: number): number {
  return Math.round(amount * 10) / 10;
}
