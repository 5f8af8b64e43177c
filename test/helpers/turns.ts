/** The number of event loop turns that other work gets meanwhile. */
export async function turnsDuring(work: Promise<unknown>): Promise<number> {
  let turns = 0;
  const count = () => {
    turns++;
    counter = setImmediate(count);
  };
  let counter = setImmediate(count);
  try {
    await work;
  } finally {
    clearImmediate(counter);
  }
  return turns;
}
