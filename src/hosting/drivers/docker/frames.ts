const HEADER_BYTES = 8;
const STDERR = 2;

export interface FrameHandlers {
  /** The next bytes of that stream; a frame may come in several parts. */
  stdout(bytes: Buffer): void;
  stderr(bytes: Buffer): void;
}

/**
 * Takes apart what Docker sends of a container: before each piece stand eight bytes, the first of which says which stream
 * it is of, the last four how long it is. Bytes are handed on as they come; nothing is copied or waited for.
 */
export class FrameSplitter {
  private readonly handlers: FrameHandlers;
  private readonly header = Buffer.alloc(HEADER_BYTES);
  private headerBytes = 0;
  /** What is still to come of the frame that is being read. */
  private left = 0;

  constructor(handlers: FrameHandlers) {
    this.handlers = handlers;
  }

  push(chunk: Buffer): void {
    let rest = chunk;
    while (rest.length > 0) rest = this.left === 0 ? this.readHeader(rest) : this.readContent(rest);
  }

  private readHeader(bytes: Buffer): Buffer {
    const taken = bytes.copy(this.header, this.headerBytes);
    this.headerBytes += taken;
    if (this.headerBytes === HEADER_BYTES) {
      this.headerBytes = 0;
      this.left = this.header.readUInt32BE(4);
    }
    return bytes.subarray(taken);
  }

  private readContent(bytes: Buffer): Buffer {
    const content = bytes.subarray(0, this.left);
    this.left -= content.length;
    if (this.header[0] === STDERR) this.handlers.stderr(content);
    else this.handlers.stdout(content);
    return bytes.subarray(content.length);
  }
}
