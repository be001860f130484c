/* tar_block.h - the header block before every entry of a tar archive; for tar.c and untar.c. */
#pragma once

enum { TAR_BLOCK = 512 };

union tar_header {
    char block[TAR_BLOCK];
    struct {
        char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], sum[8], type, target[100];
        char magic[6], version[2], user[32], group[32], major[8], minor[8], prefix[155];
    };
};
